import { expect, test } from 'vitest'
import { afterFailedAttempt, deliveryHealth, RETRY_DELAYS_MS } from './delivery.ts'

test('five retries after 1 s, 5 s, 30 s, 2 min and 10 min from the end of the failed attempt, then exhausted', () => {
  const gaps = [1, 2, 3, 4, 5, 6].map(attemptNumber => {
    const after = afterFailedAttempt(attemptNumber, 1_000, RETRY_DELAYS_MS)
    return after.kind === 'retry' ? after.dueAt - 1_000 : after.kind
  })
  expect(gaps).toEqual([1_000, 5_000, 30_000, 120_000, 600_000, 'exhausted'])
})

test('the health of a webhook follows its last ended delivery, and is never "working" while events are missing', () => {
  const quiet = { retrying: 0, givenUp: 0, lastDeliveredAt: null, lastGivenUpAt: null }
  expect(deliveryHealth(quiet)).toBe('idle')
  expect(deliveryHealth({ ...quiet, retrying: 1 })).toBe('retrying')
  expect(deliveryHealth({ ...quiet, lastDeliveredAt: 1 })).toBe('working')
  expect(deliveryHealth({ ...quiet, retrying: 1, lastDeliveredAt: 1 })).toBe('retrying')
  expect(deliveryHealth({ ...quiet, givenUp: 1, lastGivenUpAt: 1 })).toBe('failing')
  expect(deliveryHealth({ retrying: 1, givenUp: 1, lastDeliveredAt: 1, lastGivenUpAt: 2 })).toBe('failing')
  expect(deliveryHealth({ retrying: 1, givenUp: 1, lastDeliveredAt: 2, lastGivenUpAt: 1 })).toBe('retrying')
  expect(deliveryHealth({ retrying: 0, givenUp: 1, lastDeliveredAt: 2, lastGivenUpAt: 1 })).toBe('missed')
})
