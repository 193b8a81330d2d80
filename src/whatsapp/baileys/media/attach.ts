import { randomBytes } from 'node:crypto'
import type { MessageExtras } from '../../../domain/conversation.ts'
import type { MediaForm, Picture, StoredFile } from '../../../domain/media.ts'
import { type ChatContext, contextInfoOf } from '../encode-content.ts'
import { hashForWhatsapp } from './cipher.ts'
import { encodeFile } from './content.ts'
import { UploadFailed, type UploadOptions, uploadFile } from './upload.ts'

const KEY_BYTES = 32

/** A file to send, with its caption. */
export interface Attachment extends StoredFile {
  form: MediaForm
  filename: string | null
  caption: string
  /** The preview picture, which is created during the upload. Never rejects. */
  picture: Promise<Picture | null>
  /** The quote and mentions of the message. */
  more: { extras: MessageExtras; context: ChatContext } | null
}

/** Uploads the file under a new key. @returns the content that refers to it @throws UploadFailed or FileUnavailable */
export async function attach(attachment: Attachment, options: UploadOptions): Promise<Uint8Array> {
  const { media, form, filename, caption, picture, more, open } = attachment
  const { signal } = options
  const mediaKey = randomBytes(KEY_BYTES)
  const encSha256 = await hashForWhatsapp(mediaKey, form, await open(), signal).catch(error => {
    throw error === signal.reason ? new UploadFailed('The upload ended while the file was read.') : error
  })
  const { mimetype, size, sha256 } = media
  const uploaded = await uploadFile({ form, mediaKey, encSha256, size, open }, options)
  const file = { form, mediaKey, encSha256, mimetype, size, sha256, filename, caption }
  const contextInfo = more && contextInfoOf(more.extras, more.context)
  const uploadedAt = Date.now()
  return encodeFile({ ...file, ...uploaded, uploadedAt, picture: await picture }, contextInfo)
}
