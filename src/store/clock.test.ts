import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DatabaseClock } from './clock.ts'
import type { Session } from './engine/backend.ts'
import { Statements } from './engine/statement.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test("the steady clock follows a drift of the database's clock, and a step only slowly", async () => {
  let fastMs = 0
  const reader = { query: async () => [{ now: 1_000_000 + performance.now() + fastMs }] } as unknown as Session
  const clock = await DatabaseClock.open(reader, new Statements('postgres'), undefined)
  const behindMs = () => clock.now() - clock.steady()
  for (let round = 0; round < 100; round += 1) {
    fastMs += 1
    await vi.advanceTimersByTimeAsync(10_000)
  }
  expect(Math.abs(behindMs())).toBeLessThan(2)
  fastMs += 60_000
  await vi.advanceTimersByTimeAsync(10_000)
  expect(behindMs()).toBeGreaterThan(59_000)
  clock.close()
})
