import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import { startRetention } from './retention.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS

afterEach(() => vi.restoreAllMocks())

test('erases nothing for an hour after the clock was set forward by more than a day', async () => {
  let elapsed = 0
  let clock = 1_700_000_000_000
  const lines: string[] = []
  vi.spyOn(performance, 'now').mockImplementation(() => elapsed)
  const step = vi.fn(async (_before: number) => 0)
  const now = vi.fn(() => clock)
  const logger = pino({}, { write: line => lines.push(JSON.parse(line).msg) })
  const retention = startRetention({ retention: { step } as never, retentionMs: 30 * DAY_MS, logger, now })

  /** @returns whether it erased old rows */
  async function roundAfter(pauseMs: number, jumpMs = 0): Promise<boolean> {
    elapsed += pauseMs
    clock += pauseMs + jumpMs
    const [rounds, steps] = [now.mock.calls.length, step.mock.calls.length]
    retention.wake()
    await vi.waitFor(() => expect(now.mock.calls.length).toBeGreaterThan(rounds))
    return step.mock.calls.length > steps
  }

  expect(await roundAfter(0)).toBe(true)
  expect(await roundAfter(2 * DAY_MS)).toBe(true)
  expect(await roundAfter(HOUR_MS, DAY_MS)).toBe(true)
  expect(lines).toEqual([])
  expect(await roundAfter(HOUR_MS, DAY_MS + 1)).toBe(false)
  expect(lines).toEqual(['retention.clock_jumped'])
  expect(await roundAfter(HOUR_MS / 2)).toBe(false)
  // The clock is corrected.
  expect(await roundAfter(HOUR_MS / 4, -DAY_MS - 1)).toBe(false)
  expect(await roundAfter(HOUR_MS / 4)).toBe(true)
  expect(step).toHaveBeenLastCalledWith(clock - 30 * DAY_MS, clock, expect.anything())
  expect(lines).toEqual(['retention.clock_jumped'])
  await retention.stop()
})
