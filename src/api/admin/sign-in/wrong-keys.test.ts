import { expect, test } from 'vitest'
import type { WrongKeyWindow } from '../../../store/sessions/sessions.ts'
import { WrongKeys } from './wrong-keys.ts'

/** The counts of the store, and the number of queries. */
class Counts {
  readonly byKey = new Map<string, number>()
  asked = 0

  async countWrongKey(windows: readonly WrongKeyWindow[]) {
    this.asked += 1
    return windows.map(({ key, windowMs }) => {
      const count = (this.byKey.get(key) ?? 0) + 1
      this.byKey.set(key, count)
      return { count, endsInMs: windowMs }
    })
  }

  async uncountWrongKey(windows: readonly WrongKeyWindow[]) {
    for (const { key } of windows) this.byKey.set(key, this.byKey.get(key)! - 1)
  }
}

const limit = (key: string, atMost = 10, windowMs = 40_000) => ({ key, atMost, windowMs })
const [A, B] = [[limit('a')], [limit('b')]]

test('ten wrong keys are allowed in a window; after the eleventh the caller has to wait for its end', async () => {
  const wrongKeys = new WrongKeys(new Counts())
  for (let n = 0; n < 10; n += 1) expect(await wrongKeys.count(A)).toBe(0)
  const waitMs = await wrongKeys.count(A)
  expect(waitMs).toBeGreaterThan(39_000)
  expect(waitMs).toBeLessThanOrEqual(40_000)
  expect(await wrongKeys.count(B)).toBe(0)
})

test('wrong keys on other nodes count too', async () => {
  const counts = new Counts()
  const [one, other] = [new WrongKeys(counts), new WrongKeys(counts)]
  for (let n = 0; n < 5; n += 1) await one.count(A)
  expect(await other.count(A)).toBe(0)
  for (let n = 0; n < 4; n += 1) await one.count(A)
  expect(await other.count(A)).toBeGreaterThan(39_000)
})

test('each of several limits holds, and the longest wait counts', async () => {
  const wrongKeys = new WrongKeys(new Counts())
  const name = limit('name', 2, 90_000)
  for (const network of ['a', 'b']) expect(await wrongKeys.count([limit(network), name])).toBe(0)
  expect(await wrongKeys.count([limit('c'), name])).toBeGreaterThan(89_000)
  expect(await wrongKeys.count([limit('c', 0), name])).toBeGreaterThan(89_000)
  expect(await wrongKeys.count([limit('c')])).toBe(0)
})

test('a right key uses up no limit', async () => {
  const wrongKeys = new WrongKeys(new Counts())
  for (let n = 0; n < 50; n += 1) {
    expect(await wrongKeys.count(A)).toBe(0)
    await wrongKeys.uncount(A)
  }
  for (let n = 0; n < 10; n += 1) expect(await wrongKeys.count(A)).toBe(0)
  expect(await wrongKeys.count(A)).toBeGreaterThan(0)
})

test('a key that could not be checked uses up no limit', async () => {
  const wrongKeys = new WrongKeys(new Counts())
  const busy = new Error('busy')
  for (let n = 0; n < 20; n += 1) {
    expect(await wrongKeys.count(A)).toBe(0)
    await expect(wrongKeys.unlessFailed(A, Promise.reject(busy))).rejects.toBe(busy)
  }
  expect(await wrongKeys.count(A)).toBe(0)
  expect(await wrongKeys.unlessFailed(A, Promise.resolve(false))).toBe(false)
  for (let n = 0; n < 9; n += 1) expect(await wrongKeys.count(A)).toBe(0)
  expect(await wrongKeys.count(A)).toBeGreaterThan(0)
})

test('guesses of a blocked caller do not reach the store', async () => {
  const counts = new Counts()
  const wrongKeys = new WrongKeys(counts)
  for (let n = 0; n < 100; n += 1) await wrongKeys.count(A)
  expect(counts.asked).toBe(11)
})

test('of many concurrent guesses the store counts one at a time, and the excess is refused', async () => {
  let running = 0
  let most = 0
  const wrongKeys = new WrongKeys({
    async countWrongKey() {
      running += 1
      most = Math.max(most, running)
      await new Promise(setImmediate)
      running -= 1
      return [{ count: 1, endsInMs: 40_000 }]
    },
    uncountWrongKey: async () => undefined,
  })
  const waits = await Promise.all(Array.from({ length: 300 }, (_, n) => wrongKeys.count([limit(`address ${n}`)])))
  expect(most).toBe(1)
  expect(waits.filter(waitMs => waitMs === 0)).toHaveLength(100)
  expect(waits.filter(waitMs => waitMs === 1_000)).toHaveLength(200)
})

test('a failed count does not affect the next one', async () => {
  let asked = 0
  const wrongKeys = new WrongKeys({
    async countWrongKey() {
      asked += 1
      if (asked === 1) throw new Error('away')
      return [{ count: 1, endsInMs: 40_000 }]
    },
    uncountWrongKey: async () => undefined,
  })
  const [first, second] = await Promise.allSettled([wrongKeys.count(A), wrongKeys.count(B)])
  expect([first.status, second.status]).toEqual(['rejected', 'fulfilled'])
})
