import { afterEach, describe, expect, test, vi } from 'vitest'
import { Readiness, type ReadinessSources } from './readiness.ts'

const WORKING: ReadinessSources = { ping: async () => undefined, isRunning: () => true }

function isReady(changes: Partial<ReadinessSources> = {}): Promise<boolean> {
  return new Readiness({ ...WORKING, ...changes }).check()
}

describe('a node is ready', () => {
  afterEach(() => vi.useRealTimers())

  test('only if the store can be written and its leases are valid', async () => {
    expect(await isReady()).toBe(true)
    expect(await isReady({ isRunning: () => false })).toBe(false)
    expect(await isReady({ ping: () => Promise.reject(new Error('read-only')) })).toBe(false)
  })

  test('not while the store does not answer, with a response within 2 s', async () => {
    vi.useFakeTimers()
    let answer: boolean | undefined
    void isReady({ ping: () => new Promise(() => {}) }).then(ready => {
      answer = ready
    })
    await vi.advanceTimersByTimeAsync(1_999)
    expect(answer).toBe(undefined)
    await vi.advanceTimersByTimeAsync(1)
    expect(answer).toBe(false)
  })

  test('never again once it drains, even if a write to the store is pending', async () => {
    const answer = Promise.withResolvers<void>()
    const readiness = new Readiness({ ...WORKING, ping: () => answer.promise })
    const asked = readiness.check()
    readiness.isDraining = true
    answer.resolve()
    expect(await asked).toBe(false)
    expect(await readiness.check()).toBe(false)
  })

  test('for half a second after a successful write; a failed write counts at once', async () => {
    let now = 0
    let writes = 0
    let works = true
    const readiness = new Readiness({
      ...WORKING,
      now: () => now,
      ping: async () => {
        writes += 1
        if (!works) throw new Error('full')
      },
    })
    await readiness.check()
    now = 499
    expect(await readiness.check()).toBe(true)
    expect(writes).toBe(1)
    now = 500
    works = false
    expect(await readiness.check()).toBe(false)
    works = true
    expect(await readiness.check()).toBe(true)
    expect(writes).toBe(3)
  })
})
