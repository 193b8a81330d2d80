import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { refuseSlow } from './pace.ts'

const WINDOW_MS = 100
/** The least that must arrive in a window. */
const ENOUGH = WINDOW_MS * 10

async function* source(...parts: readonly (number | Promise<number>)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield new Uint8Array(await part)
}

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<number> {
  let size = 0
  for await (const part of bytes) size += part.length
  return size
}

const afterMs = async (ms: number, size: number) => sleep(ms, size)

describe('an upload', () => {
  test('passes unchanged, however many parts it has', async () => {
    expect(await collect(refuseSlow(source(1, 0, 70_000), WINDOW_MS))).toBe(70_001)
    expect(await collect(refuseSlow(source(), WINDOW_MS))).toBe(0)
  })

  test('that stops or only drips is cut after one window', async () => {
    const never = new Promise<number>(() => undefined)
    for (const parts of [[5, never], [ENOUGH - 1, never], [never]])
      await expect(collect(refuseSlow(source(...parts), WINDOW_MS))).rejects.toMatchObject({ code: 'request_timeout' })
    async function* drip(): AsyncGenerator<Uint8Array> {
      for (;;) yield new Uint8Array(await afterMs(10, 1))
    }
    await expect(collect(refuseSlow(drip(), WINDOW_MS))).rejects.toMatchObject({ code: 'request_timeout' })
  })

  test('that pauses after enough bytes loses none of them', async () => {
    const paused = source(ENOUGH, afterMs(WINDOW_MS * 1.5, ENOUGH), 7)
    expect(await collect(refuseSlow(paused, WINDOW_MS))).toBe(2 * ENOUGH + 7)
  })

  test('is not blamed for the time that its reader takes', async () => {
    let size = 0
    for await (const part of refuseSlow(source(1, 1, 1), WINDOW_MS)) {
      size += part.length
      await sleep(WINDOW_MS)
    }
    expect(size).toBe(3)
  })

  test('whose source fails is refused', async () => {
    const failing = source(5, Promise.reject(new Error('aborted')))
    await expect(collect(refuseSlow(failing, WINDOW_MS))).rejects.toMatchObject({ code: 'request_timeout' })
  })

  test('whose reader gives up ends the iteration of its source', async () => {
    let ended = false
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield new Uint8Array(10)
      } finally {
        ended = true
      }
    }
    for await (const _ of refuseSlow(endless(), WINDOW_MS)) break
    expect(ended).toBe(true)
  })
})
