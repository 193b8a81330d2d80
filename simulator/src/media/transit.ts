/** What a scenario does to bytes on their way to or from the media host. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Transit {
  /** One bit is flipped. */
  garbled: boolean
  /** The bytes end after half of them, and the connection must end there. */
  isCut: boolean
  /** Null: as fast as possible. */
  bytesPerSecond: number | null
}

const SLICES_PER_SECOND = 10

export async function* transit(
  source: AsyncIterable<Buffer>,
  { garbled, isCut, bytesPerSecond }: Transit,
  total: number,
): AsyncGenerator<Buffer> {
  let left = isCut ? Math.floor(total / 2) : Number.POSITIVE_INFINITY
  let isFirst = true
  for await (const whole of source) {
    const chunk = whole.subarray(0, left)
    if (garbled && isFirst && chunk.length > 0) chunk[0]! ^= 1
    isFirst = false
    if (bytesPerSecond === null) yield chunk
    else yield* slowly(chunk, bytesPerSecond)
    left -= chunk.length
    if (left === 0) return
  }
}

async function* slowly(chunk: Buffer, bytesPerSecond: number): AsyncGenerator<Buffer> {
  const size = Math.max(1, Math.floor(bytesPerSecond / SLICES_PER_SECOND))
  for (let at = 0; at < chunk.length; at += size) {
    const slice = chunk.subarray(at, at + size)
    yield slice
    await sleep((slice.length * 1000) / bytesPerSecond)
  }
}
