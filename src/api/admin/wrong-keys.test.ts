import { expect, test } from 'vitest'
import { WrongKeys } from './wrong-keys.ts'

/** The store's counts, and how often it was asked. */
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

test('ten wrong keys in a window are let pass, the eleventh waits for its end', async () => {
  const wrongKeys = new WrongKeys(new Counts())
  for (let n = 0; n < 10; n += 1) expect(await wrongKeys.count('a')).toBe(0)
  expect(await wrongKeys.count('a')).toBe(40_000)
  expect(await wrongKeys.count('b')).toBe(0)
})

test('keys that were tried on other nodes count', async () => {
  const counts = new Counts()
  const [one, other] = [new WrongKeys(counts), new WrongKeys(counts)]
  for (let n = 0; n < 5; n += 1) await one.count('a')
  expect(await other.count('a')).toBe(0)
  for (let n = 0; n < 4; n += 1) await one.count('a')
  expect(await other.count('a')).toBe(40_000)
})

test('who goes on guessing while he has to wait costs the store nothing', async () => {
  const counts = new Counts()
  const wrongKeys = new WrongKeys(counts)
  for (let n = 0; n < 100; n += 1) await wrongKeys.count('a')
  expect(counts.asked).toBe(11)
})
