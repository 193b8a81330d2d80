import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  type Decipheriv,
  hkdfSync,
  timingSafeEqual,
} from 'node:crypto'
import type { MediaForm } from '../../../domain/media.ts'

const BLOCK_BYTES = 16
const KEY_BYTES = 32
const MAC_BYTES = 10
const EXPANDED_BYTES = BLOCK_BYTES + 2 * KEY_BYTES + KEY_BYTES

/** Baileys `MEDIA_HKDF_KEY_MAPPING`. */
const KEY_NAMES: Readonly<Record<MediaForm, string>> = {
  image: 'Image',
  sticker: 'Image',
  video: 'Video',
  audio: 'Audio',
  voice: 'Audio',
  document: 'Document',
}

/** The file is not the one that the message states: its key, length or hash differ. */
export class AlteredFile extends Error {
  override readonly name = 'AlteredFile'
}

export interface FileHashes {
  /** The hash of the file. */
  sha256: Uint8Array
  /** The hash of the encrypted file. */
  encSha256: Uint8Array
}

/**
 * WhatsApp's encryption of files: AES-256-CBC, then the first 10 bytes of an HMAC-SHA-256 over the initialisation vector and
 * the ciphertext. The keys are derived from the media key, so the same key and file always give the same bytes.
 */
export async function* encryptForWhatsapp(
  mediaKey: Uint8Array,
  form: MediaForm,
  plain: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const { iv, cipherKey, macKey } = deriveKeys(mediaKey, form)
  const cipher = createCipheriv('aes-256-cbc', cipherKey, iv)
  const mac = createHmac('sha256', macKey).update(iv)
  for await (const part of plain) {
    const sealed = cipher.update(part)
    mac.update(sealed)
    yield sealed
  }
  const last = cipher.final()
  yield Buffer.concat([last, mac.update(last).digest().subarray(0, MAC_BYTES)])
}

/** The size of the encrypted file. */
export function encryptedSize(size: number): number {
  return (Math.floor(size / BLOCK_BYTES) + 1) * BLOCK_BYTES + MAC_BYTES
}

/**
 * Reads the whole file, because WhatsApp requires the hash of the encrypted file before its first byte.
 * @param signal ends the reading: rejects with its reason
 */
export async function hashForWhatsapp(
  mediaKey: Uint8Array,
  form: MediaForm,
  plain: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const hash = createHash('sha256')
  for await (const part of encryptForWhatsapp(mediaKey, form, plain)) {
    signal?.throwIfAborted()
    hash.update(part)
  }
  return hash.digest()
}

/** @throws AlteredFile after the last byte: discard the bytes then */
export async function* decryptFromWhatsapp(
  mediaKey: Uint8Array,
  form: MediaForm,
  sealed: AsyncIterable<Uint8Array>,
  expected: FileHashes,
): AsyncGenerator<Buffer> {
  const { iv, cipherKey, macKey } = deriveKeys(mediaKey, form)
  const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv)
  const mac = createHmac('sha256', macKey).update(iv)
  const [plainHash, sealedHash] = [createHash('sha256'), createHash('sha256')]
  // The file ends with the authentication code, which is not ciphertext. Its bytes are recognised only at the end.
  let held = Buffer.alloc(0)
  for await (const part of sealed) {
    sealedHash.update(part)
    const all = Buffer.concat([held, part])
    const ciphertext = all.subarray(0, Math.max(0, all.length - MAC_BYTES))
    held = all.subarray(ciphertext.length)
    mac.update(ciphertext)
    const plain = decipher.update(ciphertext)
    plainHash.update(plain)
    yield plain
  }
  const isIntact = equal(held, mac.digest().subarray(0, MAC_BYTES)) && equal(sealedHash.digest(), expected.encSha256)
  if (!isIntact) throw new AlteredFile('The encrypted file was altered.')
  const last = finish(decipher)
  if (!equal(plainHash.update(last).digest(), expected.sha256))
    throw new AlteredFile('The decrypted file does not have the stated hash.')
  yield last
}

/** A sender may encrypt anything, so the padding may be wrong although the authentication code is right. */
function finish(decipher: Decipheriv): Buffer {
  try {
    return decipher.final()
  } catch (error) {
    throw new AlteredFile('The padding of the file is wrong.', { cause: error })
  }
}

function deriveKeys(mediaKey: Uint8Array, form: MediaForm) {
  const expanded = Buffer.from(hkdfSync('sha256', mediaKey, '', `WhatsApp ${KEY_NAMES[form]} Keys`, EXPANDED_BYTES))
  const cipherEnd = BLOCK_BYTES + KEY_BYTES
  return {
    iv: expanded.subarray(0, BLOCK_BYTES),
    cipherKey: expanded.subarray(BLOCK_BYTES, cipherEnd),
    macKey: expanded.subarray(cipherEnd, cipherEnd + KEY_BYTES),
  }
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
