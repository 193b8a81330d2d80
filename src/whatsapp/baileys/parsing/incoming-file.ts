import type { proto, WAMessageKey } from 'baileys'
import {
  cleanFilename,
  type FileFacts,
  type IncomingFile,
  type MediaForm,
  parseMimetype,
  UNKNOWN_TYPE,
} from '../../../domain/media.ts'
import { ownBytes } from '../../../kit/own-bytes.ts'
import { isMediaPath } from '../media/hosts.ts'
import { openContent } from './content.ts'

type Part = Partial<
  proto.Message.IImageMessage &
    proto.Message.IVideoMessage &
    proto.Message.IAudioMessage &
    proto.Message.IDocumentMessage &
    proto.Message.IStickerMessage
>

const HASH_BYTES = 32
/** Larger than any real value, and exact in JSON. */
const MOST = 2 ** 40

/** The file of a message, as its sender states it. Undefined if it has none. */
export function parseFile(wrapped: proto.IMessage | null | undefined, key: WAMessageKey): IncomingFile | undefined {
  const found = partOf(openContent(wrapped) ?? {})
  if (found === null) return undefined
  const [form, part] = found
  const sha256 = hashOf(part.fileSha256)
  const filename = part.fileName ?? part.title
  const facts: FileFacts = {
    mimetype: mimetypeOf(part.mimetype),
    size: countOf(part.fileLength) ?? 0,
    sha256: sha256 ?? new Uint8Array(),
    filename: form === 'document' && filename ? cleanFilename(filename) : null,
    seconds: countOf(part.seconds),
    width: countOf(part.width),
    height: countOf(part.height),
  }
  const [mediaKey, encSha256] = [hashOf(part.mediaKey), hashOf(part.fileEncSha256)]
  const directPath = part.directPath || pathOf(part.url)
  const { id, remoteJid, participant = null, fromMe } = key
  const isComplete = mediaKey && encSha256 && sha256 && directPath && id && remoteJid
  if (!isComplete || !isMediaPath(directPath)) return { facts, source: null }
  const asked = { id, remoteJid, participant, ...(fromMe && { isOwn: true }) }
  return { facts, source: { form, mediaKey, directPath, encSha256, sha256, key: asked } }
}

function partOf(content: proto.IMessage): [MediaForm, Part] | null {
  const { imageMessage, audioMessage, documentMessage, stickerMessage } = content
  const video = content.videoMessage ?? content.ptvMessage
  if (imageMessage) return ['image', imageMessage]
  if (video) return ['video', video]
  if (audioMessage) return [audioMessage.ptt ? 'voice' : 'audio', audioMessage]
  if (documentMessage) return ['document', documentMessage]
  return stickerMessage ? ['sticker', stickerMessage] : null
}

/** `audio/ogg; codecs=opus` is the only type whose parameter matters. */
function mimetypeOf(text: string | null | undefined): string {
  const type = parseMimetype(text ?? '')
  if (type === 'audio/ogg' && /;\s*codecs=opus\b/i.test(text ?? '')) return 'audio/ogg; codecs=opus'
  return type ?? UNKNOWN_TYPE
}

/** A copy of the bytes. Null unless there are exactly 32. */
function hashOf(bytes: Uint8Array | null | undefined): Uint8Array | null {
  return bytes?.length === HASH_BYTES ? ownBytes(bytes) : null
}

function countOf(value: unknown): number | null {
  const count = value === null || value === undefined ? Number.NaN : Number(value)
  return Number.isInteger(count) && count > 0 && count < MOST ? count : null
}

/** Messages of old apps have only a URL. Its host does not matter. */
function pathOf(url: string | null | undefined): string | null {
  const parsed = URL.parse(url ?? '')
  return parsed && parsed.pathname !== '/' ? parsed.pathname + parsed.search : null
}
