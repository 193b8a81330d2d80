/** Media messages, as simulated phones read and write them. */
import type { proto } from 'baileys/WAProto/index.js'
import type { FileFacts } from './media-cipher.ts'
import type { MediaDescription, MediaType } from './media-types.ts'

type Part = Partial<
  proto.Message.IImageMessage &
    proto.Message.IVideoMessage &
    proto.Message.IAudioMessage &
    proto.Message.IDocumentMessage &
    proto.Message.IStickerMessage
>

/** A media message, and where its file is. */
export interface MediaMessage {
  description: MediaDescription
  directPath: string
  /** What the message states, which need not be true. */
  facts: FileFacts
}

const NO_BYTES = Buffer.alloc(0)

/** Null if this is not a media message. */
export function mediaIn(message: proto.IMessage): MediaMessage | null {
  const found = partIn(message)
  if (!found) return null
  const [type, part] = found
  const { mimetype, caption, fileName, seconds, width, height, jpegThumbnail } = part
  return {
    description: {
      type,
      mimetype: mimetype ?? '',
      ...(caption && { caption }),
      ...(fileName && { filename: fileName }),
      ...(seconds && { seconds }),
      ...(width && { width }),
      ...(height && { height }),
      ...(jpegThumbnail?.length && { thumbnail: Buffer.from(jpegThumbnail).toString('base64') }),
    },
    directPath: part.directPath ?? '',
    facts: {
      mediaKey: Buffer.from(part.mediaKey ?? NO_BYTES),
      sha256: Buffer.from(part.fileSha256 ?? NO_BYTES),
      encSha256: Buffer.from(part.fileEncSha256 ?? NO_BYTES),
      size: Number(part.fileLength ?? 0),
    },
  }
}

function partIn(message: proto.IMessage): [MediaType, Part] | null {
  const { imageMessage, videoMessage, ptvMessage, audioMessage, documentMessage, stickerMessage } = message
  const video = videoMessage ?? ptvMessage
  if (imageMessage) return ['image', imageMessage]
  if (video) return ['video', video]
  if (audioMessage) return [audioMessage.ptt ? 'voice' : 'audio', audioMessage]
  if (documentMessage) return ['document', documentMessage]
  return stickerMessage ? ['sticker', stickerMessage] : null
}

const DEFAULT_MIMETYPES = {
  image: 'image/jpeg',
  video: 'video/mp4',
  audio: 'audio/mp4',
  voice: 'audio/ogg; codecs=opus',
  document: 'application/pdf',
  sticker: 'image/webp',
} as const satisfies Record<MediaType, string>

/** A message about an uploaded file. WhatsApp's phones wrap a document that has a caption. */
export function mediaMessage(
  {
    type,
    mimetype,
    caption,
    filename,
    seconds,
    width,
    height,
    thumbnail,
  }: Partial<MediaDescription> & { type: MediaType },
  file: FileFacts & { url: string; directPath: string },
  contextInfo?: proto.IContextInfo,
): proto.IMessage {
  const part = {
    url: file.url,
    directPath: file.directPath,
    mediaKey: file.mediaKey,
    fileSha256: file.sha256,
    fileEncSha256: file.encSha256,
    fileLength: file.size,
    mediaKeyTimestamp: Math.floor(Date.now() / 1000),
    mimetype: mimetype ?? DEFAULT_MIMETYPES[type],
    caption: caption ?? null,
    seconds: seconds ?? null,
    width: width ?? null,
    height: height ?? null,
    jpegThumbnail: thumbnail === undefined ? null : Buffer.from(thumbnail, 'base64'),
    contextInfo: contextInfo ?? null,
  }
  switch (type) {
    case 'image':
      return { imageMessage: part }
    case 'video':
      return { videoMessage: part }
    case 'audio':
    case 'voice':
      return { audioMessage: { ...part, ptt: type === 'voice' } }
    case 'sticker':
      return { stickerMessage: part }
    case 'document': {
      const documentMessage = { ...part, fileName: filename ?? null, title: filename ?? null }
      if (caption === undefined) return { documentMessage }
      return { documentWithCaptionMessage: { message: { documentMessage } } }
    }
  }
}
