import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ByteRange } from '../domain/media.ts'
import { CHUNK_BYTES, DamagedFile, decryptFile, encryptFile, storedRange } from './chunks.ts'

const KEY = randomBytes(32)
const STORED_CHUNK = CHUNK_BYTES + 16

async function* inParts(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function collect(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  // A part of `encryptFile` is valid only until the next one.
  for await (const part of parts) all.push(Buffer.from(part))
  return Buffer.concat(all)
}

const encrypt = (plain: Uint8Array, partSize = 50_000) => collect(encryptFile(KEY, inParts(plain, partSize)))

function decrypt(stored: Uint8Array, size: number, range: ByteRange = { from: 0, to: size - 1 }, key = KEY) {
  const { from, to } = storedRange(range, size)
  return collect(decryptFile(key, inParts(stored.subarray(from, to + 1), 70_000), size, range))
}

describe('a stored file', () => {
  test('opens to the same bytes, whole or in any range, however it is cut into parts', async () => {
    const sizes = fc.oneof(
      fc.integer({ min: 1, max: 3 * CHUNK_BYTES }),
      fc.constantFrom(CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES),
    )
    const property = fc.asyncProperty(
      sizes,
      fc.nat(),
      fc.nat(),
      fc.integer({ min: 1_000, max: 200_000 }),
      async (size, a, b, part) => {
        const plain = randomBytes(size)
        const stored = await encrypt(plain, part)
        expect(stored.length).toBe(size + 16 * Math.ceil(size / CHUNK_BYTES))
        const [from, to] = [a % size, b % size].toSorted((x, y) => x - y) as [number, number]
        expect((await decrypt(stored, size)).equals(plain)).toBe(true)
        expect((await decrypt(stored, size, { from, to })).equals(plain.subarray(from, to + 1))).toBe(true)
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })

  test('opens with its own key only', async () => {
    const stored = await encrypt(randomBytes(100))
    await expect(decrypt(stored, 100, undefined, randomBytes(32))).rejects.toThrow(DamagedFile)
  })

  test('that was cut, lengthened, reordered or changed does not open', async () => {
    const size = 2 * CHUNK_BYTES
    const stored = await encrypt(randomBytes(size))
    const first = stored.subarray(0, STORED_CHUNK)
    const second = stored.subarray(STORED_CHUNK)
    const changed = Buffer.from(stored)
    changed[STORED_CHUNK + 5]! ^= 1
    for (const [bytes, claimed] of [
      [first, size],
      [first, CHUNK_BYTES],
      [second, CHUNK_BYTES],
      [Buffer.concat([second, first]), size],
      [Buffer.concat([first, first]), size],
      [stored.subarray(0, -1), size],
      [stored.subarray(0, STORED_CHUNK + 3), size],
      [changed, size],
      [Buffer.alloc(0), size],
    ] as const) {
      await expect(decrypt(bytes, claimed)).rejects.toThrow(DamagedFile)
    }
  })

  test('gives out the chunks before a damaged one, and no byte of that one', async () => {
    const size = 3 * CHUNK_BYTES
    const plain = randomBytes(size)
    const stored = await encrypt(plain)
    stored[2 * STORED_CHUNK + 9]! ^= 1
    const seen: Uint8Array[] = []
    const reading = async () => {
      for await (const part of decryptFile(KEY, inParts(stored, 9_999), size, { from: 0, to: size - 1 }))
        seen.push(part)
    }
    await expect(reading()).rejects.toThrow(DamagedFile)
    expect(Buffer.concat(seen).equals(plain.subarray(0, 2 * CHUNK_BYTES))).toBe(true)
  })
})
