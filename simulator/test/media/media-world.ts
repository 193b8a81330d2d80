import { createHash, randomBytes } from 'node:crypto'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { MediaAccess, MediaType } from '@pombal/simulator'
import { type AnyMessageContent, downloadMediaMessage, type WAMessage } from 'baileys'
import type { BaileysClient } from '../baileys-client.ts'

/** Sizes around the limits of cipher blocks and pieces. */
const SIZES = { image: 70_001, video: 131_072, audio: 65_536, voice: 15, document: 1, sticker: 16 } as const

export const files: Readonly<Record<MediaType, Buffer>> = {
  image: randomBytes(SIZES.image),
  video: randomBytes(SIZES.video),
  audio: randomBytes(SIZES.audio),
  voice: randomBytes(SIZES.voice),
  document: randomBytes(SIZES.document),
  sticker: randomBytes(SIZES.sticker),
}

/** Each type as a Baileys program sends it. Dimensions and thumbnails that Baileys cannot compute are given. */
export const contents = {
  image: { image: files.image, caption: 'a caption', mimetype: 'image/png', width: 30, height: 20, jpegThumbnail: '' },
  video: { video: files.video, caption: 'a video', seconds: 7, jpegThumbnail: '' },
  audio: { audio: files.audio, mimetype: 'audio/mp4', seconds: 3 },
  voice: {
    audio: files.voice,
    ptt: true,
    mimetype: 'audio/ogg; codecs=opus',
    seconds: 2,
    waveform: new Uint8Array(64),
  },
  document: { document: files.document, fileName: 'contract.pdf', mimetype: 'application/pdf' },
  sticker: { sticker: files.sticker },
} as unknown as Record<MediaType, AnyMessageContent>

/** What the phone shows of these files. */
export const descriptions = {
  image: { mimetype: 'image/png', caption: 'a caption', width: 30, height: 20 },
  video: { mimetype: 'video/mp4', caption: 'a video', seconds: 7 },
  audio: { mimetype: 'audio/mp4', seconds: 3 },
  voice: { mimetype: 'audio/ogg; codecs=opus', seconds: 2 },
  document: { mimetype: 'application/pdf', filename: 'contract.pdf' },
  sticker: { mimetype: 'image/webp' },
} as const

/** As `NODE_EXTRA_CA_CERTS` does for a whole process. */
export function trust({ certificate }: MediaAccess): void {
  setDefaultCACertificates([...getCACertificates('default'), certificate])
}

export const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

export function download(message: WAMessage): Promise<Buffer> {
  return downloadMediaMessage(message, 'buffer', {})
}

export async function sendContent(client: BaileysClient, jid: string, content: AnyMessageContent): Promise<WAMessage> {
  return (await client.sock.sendMessage(jid, content))!
}

/** The message with this WhatsApp ID, once it has arrived. */
export function received(client: BaileysClient, id: string): WAMessage | undefined {
  return client.seen.messages.find(({ message }) => message.key.id === id)?.message
}
