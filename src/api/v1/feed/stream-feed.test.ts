import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { follow } from './stream-feed.ts'

const POLL_MS = 4_000

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

test('a silent stream gets a comment 15 s after the last one, whenever the reader polls', async () => {
  const page = { events: [], isLast: true, to: { seq: 0, tail: '' } } as never
  const cursor = {
    read: async () => page,
    next: async (_page: unknown, withinMs: number) => {
      vi.advanceTimersByTime(Math.min(withinMs, POLL_MS))
    },
    position: '7.a',
    ended: new AbortController().signal,
  }
  const startedAt = performance.now()
  const sent: [string, number][] = []
  for await (const text of follow(cursor, page, { logger: pino({ enabled: false }) }, { raw: {} } as never)) {
    sent.push([text, performance.now() - startedAt])
    if (sent.length === 3) break
  }
  expect(sent).toEqual([
    ['id: 7.a\n\n', 0],
    [':\n\n', 15_000],
    [':\n\n', 30_000],
  ])
})
