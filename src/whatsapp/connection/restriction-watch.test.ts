import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ASSUMED_RESTRICTION_MS } from '../../domain/restriction.ts'
import { QUERY_TIMEOUT_MS } from '../baileys/socket-options.ts'
import { RestrictionWatch } from './restriction-watch.ts'

const DAY_MS = 86_400_000

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

function start(answer: (watch: RestrictionWatch) => void = () => undefined) {
  const onChanged = vi.fn()
  const askWhatsapp = vi.fn(async () => answer(watch))
  const watch: RestrictionWatch = new RestrictionWatch({ now: Date.now, askWhatsapp, onChanged })
  watch.load(null)
  return { watch, onChanged, askWhatsapp }
}

test('a refusal restricts at once, and WhatsApp is asked until when, once', () => {
  const { watch, onChanged, askWhatsapp } = start()
  watch.refused()
  watch.refused()
  expect(watch.isInForce).toBe(true)
  expect(onChanged).toHaveBeenCalledTimes(1)
  expect(askWhatsapp).toHaveBeenCalledTimes(1)
  expect(watch.describe().cause).toBe('restricted')
})

test('of which nobody said when it ends: WhatsApp is asked before the next stranger is written to', async () => {
  const { watch, askWhatsapp, onChanged } = start()
  watch.refused()
  await vi.advanceTimersByTimeAsync(ASSUMED_RESTRICTION_MS - QUERY_TIMEOUT_MS)
  expect(askWhatsapp).toHaveBeenCalledTimes(2)
  expect(watch.isInForce).toBe(true)
  await vi.advanceTimersByTimeAsync(QUERY_TIMEOUT_MS)
  expect(watch.restriction).toBeNull()
  expect(onChanged).toHaveBeenCalledTimes(2)
})

test('whose end nobody said lasts no longer when the clock is set back', async () => {
  let offsetMs = 0
  const askWhatsapp = vi.fn(async () => undefined)
  const watch = new RestrictionWatch({ now: () => Date.now() + offsetMs, askWhatsapp, onChanged: vi.fn() })
  watch.refused()
  offsetMs = -ASSUMED_RESTRICTION_MS
  await vi.advanceTimersByTimeAsync(ASSUMED_RESTRICTION_MS)
  expect([watch.isInForce, watch.restriction]).toEqual([false, null])
})

test('that WhatsApp says still holds goes on', async () => {
  const { watch, onChanged } = start(one => one.told({ active: true, until: null }))
  watch.refused()
  await vi.advanceTimersByTimeAsync(5 * ASSUMED_RESTRICTION_MS)
  expect(watch.isInForce).toBe(true)
  expect(onChanged).toHaveBeenCalled()
})

test('for longer than a timer can wait ends when it ends', async () => {
  const { watch } = start()
  watch.told({ active: true, until: Date.now() + 40 * DAY_MS })
  await vi.advanceTimersByTimeAsync(40 * DAY_MS - 1)
  expect(watch.restriction).not.toBeNull()
  await vi.advanceTimersByTimeAsync(1)
  expect(watch.restriction).toBeNull()
})

test('that ended while nobody ran is lifted', async () => {
  const { onChanged, askWhatsapp } = start()
  const watch = new RestrictionWatch({ now: Date.now, askWhatsapp, onChanged })
  watch.load({ since: 0, until: Date.now() - 1, reportedByWhatsapp: true })
  expect(watch.isInForce).toBe(false)
  await vi.advanceTimersByTimeAsync(0)
  expect([watch.restriction, onChanged.mock.calls.length]).toEqual([null, 1])
})
