import type { proto } from 'baileys'
import type { MediaForm, Picture } from '../../../domain/media.ts'
import { encodeWithSecret } from '../encode-content.ts'
import type { FileHashes } from './cipher.ts'
import type { UploadedFile } from './upload.ts'

/** A file that WhatsApp holds, as a message refers to it. */
export interface SentFile extends FileHashes, UploadedFile {
  form: MediaForm
  mediaKey: Uint8Array
  /** When WhatsApp received the file, in milliseconds since 1970. */
  uploadedAt: number
  mimetype: string
  size: number
  filename: string | null
  caption: string
  /** The preview. Null or absent if none could be created. */
  picture?: Picture | null
}

/** The content of a message with a file. It is encoded once and stored, so that every attempt sends the same bytes. */
export function encodeFile(file: SentFile, contextInfo: proto.IContextInfo | null = null): Uint8Array {
  return encodeWithSecret(partOf(file, contextInfo))
}

function partOf(file: SentFile, contextInfo: proto.IContextInfo | null): proto.IMessage {
  const part = {
    url: file.url,
    directPath: file.directPath,
    mediaKey: file.mediaKey,
    mediaKeyTimestamp: Math.floor(file.uploadedAt / 1000),
    fileSha256: file.sha256,
    fileEncSha256: file.encSha256,
    fileLength: file.size,
    mimetype: file.mimetype,
    ...(contextInfo && { contextInfo }),
  }
  const { picture } = file
  const size = picture && { width: picture.width, height: picture.height }
  const thumbnail = picture && { jpegThumbnail: picture.thumbnail }
  const caption = file.caption === '' ? {} : { caption: file.caption }
  switch (file.form) {
    case 'image':
      return { imageMessage: { ...part, ...caption, ...size, ...thumbnail } }
    case 'video':
      return { videoMessage: { ...part, ...caption } }
    case 'audio':
      return { audioMessage: part }
    case 'voice':
      return { audioMessage: { ...part, ptt: true } }
    case 'sticker':
      return { stickerMessage: { ...part, ...size, isAnimated: picture?.isAnimated ?? false } }
    case 'document':
      return documentPart(file, { ...part, ...caption, ...thumbnail })
  }
}

/** WhatsApp's phones wrap a document that has a caption. */
function documentPart({ filename, caption }: SentFile, part: proto.Message.IDocumentMessage): proto.IMessage {
  const name = filename ?? 'file'
  const documentMessage = { ...part, fileName: name, title: name }
  return caption === '' ? { documentMessage } : { documentWithCaptionMessage: { message: { documentMessage } } }
}
