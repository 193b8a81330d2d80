import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LATENCY_BOUNDS_MS } from '../../store/statistics/statistics.ts'
import { quantile, statisticsView } from './statistics.ts'

const LENGTH = LATENCY_BOUNDS_MS.length + 1

/** The histogram that the store would count. */
function histogram(latenciesMs: readonly number[]) {
  return Array.from({ length: LENGTH }, (_, index) => {
    const from = LATENCY_BOUNDS_MS[index - 1] ?? -1
    const inBucket = latenciesMs.filter(ms => ms > from && ms <= (LATENCY_BOUNDS_MS[index] ?? Number.MAX_VALUE))
    return { count: inBucket.length, longestMs: Math.max(0, ...inBucket) }
  })
}

test('an empty histogram has no quantile', () => {
  expect(quantile(histogram([]), 0.5)).toBeNull()
})

test('three deliveries of 2 min 36 s have a median and a 95th percentile of 2 min 36 s', () => {
  const outcomes = { first: 0, retried: 3, redelivered: 0, exhausted: 0, waiting: 0, notPosted: 0 }
  const messages = { sent: 3, failed: 0, queued: 0, received: 0 }
  const { buckets, ...all } = statisticsView(
    [
      { at: 0, messages, outcomes: { ...outcomes, latencies: histogram([156_000]) } },
      { at: 1, messages, outcomes: { ...outcomes, latencies: histogram([156_000, 156_000]) } },
    ],
    [],
  )
  expect(all).toEqual({ medianMs: 156_000, p95Ms: 156_000, failures: [] })
  expect(buckets.map(({ p95Ms }) => p95Ms)).toEqual([156_000, 156_000])
})

test('a quantile is a measured time, and at least its share took no longer', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(2_000_000), { minLength: 1, maxLength: 60 }),
      fc.constantFrom(0.5, 0.95),
      (given, share) => {
        const found = quantile(histogram(given), share)!
        expect(given).toContain(found)
        expect(given.filter(ms => ms <= found).length).toBeGreaterThanOrEqual(share * given.length)
      },
    ),
  )
})
