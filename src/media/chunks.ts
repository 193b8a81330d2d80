import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { ByteRange } from '../domain/media.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
export const CHUNK_BYTES = 65_536
/** Of an encrypted chunk. */
export const SEALED_BYTES = CHUNK_BYTES + TAG_BYTES

/** A stored file is not as it was written: it was cut or changed, or the key belongs to another file. */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile'
}

/**
 * Encrypts a file in chunks of 64 KiB, so that a part of it can be read. Each file has a key of its own, so the number of the
 * chunk is its nonce. The nonce also says whether the chunk is the last one: a file that was cut does not open.
 */
export async function* encryptFile(key: Uint8Array, plain: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let index = 0
  let held: Uint8Array | null = null
  for await (const chunk of inPieces(plain, CHUNK_BYTES)) {
    if (held !== null) yield seal(key, nonceOf(index++, false), held)
    held = chunk
  }
  if (held !== null) yield seal(key, nonceOf(index, true), held)
}

/** The bytes of the stored file that contain this range of a file of `size` bytes. */
export function storedRange({ from, to }: ByteRange, size: number): ByteRange {
  const chunks = Math.ceil(size / CHUNK_BYTES)
  const end = Math.min((chunkOf(to) + 1) * SEALED_BYTES, size + chunks * TAG_BYTES)
  return { from: chunkOf(from) * SEALED_BYTES, to: end - 1 }
}

/**
 * @param stored the bytes of the `storedRange`
 * @throws DamagedFile before any byte of a damaged chunk
 */
export async function* decryptFile(
  key: Uint8Array,
  stored: AsyncIterable<Uint8Array>,
  size: number,
  { from, to }: ByteRange,
): AsyncGenerator<Uint8Array> {
  let index = chunkOf(from)
  for await (const chunk of inPieces(stored, SEALED_BYTES)) {
    const start = index * CHUNK_BYTES
    const plain = open(key, nonceOf(index, start + CHUNK_BYTES >= size), chunk)
    yield plain.subarray(Math.max(0, from - start), to + 1 - start)
    index += 1
  }
  if (index !== chunkOf(to) + 1) throw new DamagedFile('The file is shorter than it was.')
}

function chunkOf(position: number): number {
  return Math.floor(position / CHUNK_BYTES)
}

function nonceOf(index: number, isLast: boolean): Uint8Array {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce.writeUInt32BE(index, NONCE_BYTES - 5)
  nonce.writeUInt8(isLast ? 1 : 0, NONCE_BYTES - 1)
  return nonce
}

function seal(key: Uint8Array, nonce: Uint8Array, plain: Uint8Array): Uint8Array {
  const cipher = createCipheriv(CIPHER, key, nonce)
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

function open(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array): Buffer {
  const tagAt = sealed.length - TAG_BYTES
  if (tagAt <= 0) throw new DamagedFile('A chunk of the file is too short.')
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(sealed.subarray(tagAt))
  const plain = decipher.update(sealed.subarray(0, tagAt))
  try {
    decipher.final()
  } catch (error) {
    throw new DamagedFile('A chunk of the file was changed.', { cause: error })
  }
  return plain
}

/** The same bytes in pieces of `size` bytes; the last one may be shorter. */
async function* inPieces(bytes: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = []
  let length = 0
  for await (const part of bytes) {
    held.push(part)
    length += part.length
    if (length < size) continue
    const all = held.length === 1 ? held[0]! : Buffer.concat(held, length)
    let from = 0
    for (; length - from >= size; from += size) yield all.subarray(from, from + size)
    held = from < length ? [all.subarray(from)] : []
    length -= from
  }
  if (length > 0) yield Buffer.concat(held, length)
}
