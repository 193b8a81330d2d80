/**
 * The encryption of media files: AES-256-CBC, then the first 10 bytes of an HMAC-SHA-256 over the initialisation vector and
 * the ciphertext. The keys are derived from the media key in the message.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, type Hash, hkdfSync, randomBytes } from 'node:crypto'
import type { MediaType } from './media-types.ts'

export type ByteSource = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

export interface MediaKeys {
  iv: Buffer
  cipherKey: Buffer
  macKey: Buffer
}

/** What a message states about its file. */
export interface FileFacts {
  mediaKey: Buffer
  /** The hash of the file before encryption. */
  sha256: Buffer
  /** The hash of the encrypted file. */
  encSha256: Buffer
  /** The size in bytes, before encryption. */
  size: number
}

/** The encrypted file is not the one that was uploaded, or the key does not belong to it. */
export class AlteredMedia extends Error {}

const KEY_BYTES = 32
const IV_BYTES = 16
const MAC_BYTES = 10
const EXPANDED_BYTES = 112

const KEY_NAMES = {
  image: 'Image',
  video: 'Video',
  audio: 'Audio',
  voice: 'Audio',
  document: 'Document',
  sticker: 'Image',
} as const satisfies Record<MediaType, string>

export function mediaKeys(mediaKey: Uint8Array, type: MediaType): MediaKeys {
  const expanded = Buffer.from(hkdfSync('sha256', mediaKey, '', `WhatsApp ${KEY_NAMES[type]} Keys`, EXPANDED_BYTES))
  const cipherAt = IV_BYTES
  const macAt = cipherAt + KEY_BYTES
  return {
    iv: expanded.subarray(0, cipherAt),
    cipherKey: expanded.subarray(cipherAt, macAt),
    macKey: expanded.subarray(macAt, macAt + KEY_BYTES),
  }
}

/** One file, encrypted under a fresh key. Call `facts` only one time, after all of `bytes` has been read. */
export function encryptFile(
  source: ByteSource,
  type: MediaType,
): { bytes: AsyncGenerator<Buffer>; facts(): FileFacts } {
  const mediaKey = randomBytes(KEY_BYTES)
  const { iv, cipherKey, macKey } = mediaKeys(mediaKey, type)
  const [plain, encrypted] = [createHash('sha256'), createHash('sha256')]
  let size = 0
  async function* bytes() {
    const cipher = createCipheriv('aes-256-cbc', cipherKey, iv)
    const mac = createHmac('sha256', macKey).update(iv)
    for await (const chunk of source) {
      size += chunk.length
      plain.update(chunk)
      const part = cipher.update(chunk)
      mac.update(part)
      yield part
    }
    const last = cipher.final()
    yield Buffer.concat([last, mac.update(last).digest().subarray(0, MAC_BYTES)])
  }
  return {
    bytes: hashed(bytes(), encrypted),
    facts: () => ({ mediaKey, sha256: plain.digest(), encSha256: encrypted.digest(), size }),
  }
}

/** @throws AlteredMedia after the last chunk, if the file was altered */
export async function* decryptFile(source: ByteSource, { iv, cipherKey, macKey }: MediaKeys): AsyncGenerator<Buffer> {
  const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv)
  const mac = createHmac('sha256', macKey).update(iv)
  // The last bytes received, which may belong to the authentication code.
  let held = Buffer.alloc(0)
  for await (const chunk of source) {
    const end = Math.max(0, chunk.length - MAC_BYTES)
    const next = Buffer.concat([held, chunk.subarray(end)])
    const released = next.subarray(0, Math.max(0, next.length - MAC_BYTES))
    held = next.subarray(released.length)
    // The held bytes come before this chunk, so they are released before it.
    for (const part of end > 0 ? [released, chunk.subarray(0, end)] : [released]) {
      mac.update(part)
      yield decipher.update(part)
    }
  }
  if (!mac.digest().subarray(0, MAC_BYTES).equals(held)) throw new AlteredMedia()
  yield decipher.final()
}

/** Passes the bytes on unchanged and adds them to the hash. */
export async function* hashed<Chunk extends Uint8Array>(
  source: AsyncIterable<Chunk>,
  hash: Hash,
): AsyncGenerator<Chunk> {
  for await (const chunk of source) {
    hash.update(chunk)
    yield chunk
  }
}
