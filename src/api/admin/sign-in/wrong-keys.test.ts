import { expect, test } from 'vitest'
import { WrongKeys } from './wrong-keys.ts'

/** The counts of the store, and the number of queries. */
class Counts {
  readonly byAddress = new Map<string, number>()
  asked = 0

  async countWrongKey(address: string) {
    this.asked += 1
    const count = (this.byAddress.get(address) ?? 0) + 1
    this.byAddress.set(address, count)
    return { count, endsInMs: 40_000 }
  }
}

test('ten wrong keys are allowed in a window; after the eleventh the address has to wait for its end', async () => {
  const wrongKeys = new WrongKeys(new Counts())
  for (let n = 0; n < 10; n += 1) expect(await wrongKeys.count('a')).toBe(0)
  expect(await wrongKeys.count('a')).toBe(40_000)
  expect(await wrongKeys.count('b')).toBe(0)
})

test('wrong keys on other nodes count too', async () => {
  const counts = new Counts()
  const [one, other] = [new WrongKeys(counts), new WrongKeys(counts)]
  for (let n = 0; n < 5; n += 1) await one.count('a')
  expect(await other.count('a')).toBe(0)
  for (let n = 0; n < 4; n += 1) await one.count('a')
  expect(await other.count('a')).toBe(40_000)
})

test('guesses from a blocked address do not reach the store', async () => {
  const counts = new Counts()
  const wrongKeys = new WrongKeys(counts)
  for (let n = 0; n < 100; n += 1) await wrongKeys.count('a')
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
      return { count: 1, endsInMs: 40_000 }
    },
  })
  const waits = await Promise.all(Array.from({ length: 300 }, (_, n) => wrongKeys.count(`address ${n}`)))
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
      return { count: 1, endsInMs: 40_000 }
    },
  })
  const [first, second] = await Promise.allSettled([wrongKeys.count('a'), wrongKeys.count('b')])
  expect([first.status, second.status]).toEqual(['rejected', 'fulfilled'])
})
