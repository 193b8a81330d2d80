import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { ByteRange } from '../domain/media.ts'
import { countBuffers } from './used-buffers.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
export const CHUNK_BYTES = 65_536
/** The size of an encrypted chunk. */
export const SEALED_BYTES = CHUNK_BYTES + TAG_BYTES

/** A stored file differs from what was written: it was cut or changed, or the key belongs to another file. */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile'
}

/**
 * Encrypts a file in chunks of 64 KiB, so that a part of it can be read. Each file has a key of its own, so the number of the
 * chunk is its nonce. The nonce also says whether the chunk is the last one: a file that was cut does not open.
 * All chunks share one buffer: a chunk is valid until the next one is requested.
 */
export async function* encryptFile(key: Uint8Array, plain: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const sealed = Buffer.allocUnsafeSlow(SEALED_BYTES)
  let index = 0
  for await (const { piece, isLast } of inPieces(plain, CHUNK_BYTES)) {
    const length = seal(key, nonceOf(index++, isLast), piece, sealed)
    countBuffers(piece.length)
    yield sealed.subarray(0, length)
  }
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
  for await (const { piece } of inPieces(stored, SEALED_BYTES)) {
    const start = index * CHUNK_BYTES
    const plain = open(key, nonceOf(index, start + CHUNK_BYTES >= size), piece)
    countBuffers(plain.length)
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

/** @returns how many bytes of `sealed` are the encrypted chunk */
function seal(key: Uint8Array, nonce: Uint8Array, plain: Uint8Array, sealed: Uint8Array): number {
  const cipher = createCipheriv(CIPHER, key, nonce)
  sealed.set(cipher.update(plain))
  cipher.final()
  sealed.set(cipher.getAuthTag(), plain.length)
  return plain.length + TAG_BYTES
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

/** The bytes in pieces of `size` bytes; the last may be shorter. A piece is valid until the next one is requested. */
async function* inPieces(
  bytes: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<{ piece: Uint8Array; isLast: boolean }> {
  const piece = Buffer.allocUnsafeSlow(size)
  let length = 0
  for await (const part of bytes) {
    for (let from = 0; from < part.length; ) {
      if (length === size) {
        yield { piece, isLast: false }
        length = 0
      }
      const taken = part.subarray(from, from + size - length)
      piece.set(taken, length)
      length += taken.length
      from += taken.length
    }
  }
  if (length > 0) yield { piece: piece.subarray(0, length), isLast: true }
}
