import { expect, test } from 'vitest'
import { WrongKeys } from './wrong-keys.ts'

test('ten wrong keys in a minute are let pass, the eleventh waits for the end of the window', () => {
  const wrongKeys = new WrongKeys()
  for (let n = 0; n < 10; n += 1) expect(wrongKeys.count('a', n * 1_000)).toBe(0)
  expect(wrongKeys.count('a', 20_000)).toBe(40_000)
  expect(wrongKeys.count('a', 59_999)).toBe(1)
  expect(wrongKeys.count('a', 60_000)).toBe(0)
})

test('one address does not answer for another', () => {
  const wrongKeys = new WrongKeys()
  for (let n = 0; n < 20; n += 1) wrongKeys.count('a', 0)
  expect(wrongKeys.count('b', 0)).toBe(0)
})

test('a flood of addresses pushes out the ones seen longest ago, not the busy one', () => {
  const wrongKeys = new WrongKeys()
  for (let n = 0; n < 11; n += 1) wrongKeys.count('old', 0)
  for (let n = 0; n < 11; n += 1) wrongKeys.count('busy', 0)
  for (let n = 0; n < 10_000; n += 1) {
    wrongKeys.count(`other ${n}`, 0)
    if (n % 1_000 === 0) wrongKeys.count('busy', 0)
  }
  expect(wrongKeys.count('old', 0)).toBe(0)
  expect(wrongKeys.count('busy', 0)).toBeGreaterThan(0)
})
