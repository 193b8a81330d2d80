import { expect, test } from 'vitest'
import { CallFailed } from './feed-client.ts'

test.each([
  ['7', 7],
  ['Wed, 21 Oct 2026 07:28:00 GMT', null],
  ['', null],
  ['0', null],
  [null, null],
])('a refused call with Retry-After %j is repeated after %j seconds; null is the usual pause', (header, seconds) => {
  expect(new CallFailed('/v1/events/stream', 503, header, '').retryAfter).toBe(seconds)
})
