import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LATENCY_BOUNDS_MS } from '../../store/statistics/statistics.ts'
import { quantile } from './statistics.ts'

const LENGTH = LATENCY_BOUNDS_MS.length + 1
const counts = (entries: Record<number, number>) => Array.from({ length: LENGTH }, (_, index) => entries[index] ?? 0)

test('an empty histogram has no quantile', () => {
  expect(quantile(counts({}), 0.5)).toBeNull()
})

test('a quantile is interpolated within the bounds of its bucket', () => {
  const index = LATENCY_BOUNDS_MS.indexOf(100)
  expect(quantile(counts({ [index]: 10 }), 0.5)).toBe(75)
  expect(quantile(counts({ 0: 5, [index]: 5 }), 0.5)).toBe(10)
})

test('a quantile above the highest bound is that bound', () => {
  expect(quantile(counts({ [LENGTH - 1]: 3 }), 0.95)).toBe(LATENCY_BOUNDS_MS.at(-1))
})

test('a higher share never has a lower quantile', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50), { minLength: LENGTH, maxLength: LENGTH }), given => {
      const median = quantile(given, 0.5)
      const p95 = quantile(given, 0.95)
      if (median === null || p95 === null) expect(given.every(count => count === 0)).toBe(true)
      else expect(p95).toBeGreaterThanOrEqual(median)
    }),
  )
})
