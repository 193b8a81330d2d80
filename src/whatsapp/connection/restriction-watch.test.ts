import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ASSUMED_RESTRICTION_MS } from '../../domain/connection/restriction.ts'
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

test('a refusal restricts at once, and WhatsApp is asked once for the end', () => {
  const { watch, onChanged, askWhatsapp } = start()
  watch.onRefusal()
  watch.onRefusal()
  expect(watch.isInForce).toBe(true)
  expect(onChanged).toHaveBeenCalledTimes(1)
  expect(askWhatsapp).toHaveBeenCalledTimes(1)
  expect(watch.describe().cause).toBe('restricted')
})

test('shortly before an assumed end WhatsApp is asked again', async () => {
  const { watch, askWhatsapp, onChanged } = start()
  watch.onRefusal()
  await vi.advanceTimersByTimeAsync(ASSUMED_RESTRICTION_MS - QUERY_TIMEOUT_MS)
  expect(askWhatsapp).toHaveBeenCalledTimes(2)
  expect(watch.isInForce).toBe(true)
  await vi.advanceTimersByTimeAsync(QUERY_TIMEOUT_MS)
  expect(watch.restriction).toBeNull()
  expect(onChanged).toHaveBeenCalledTimes(2)
})

test('an assumed restriction lasts no longer when the clock is set back', async () => {
  let offsetMs = 0
  const askWhatsapp = vi.fn(async () => undefined)
  const watch = new RestrictionWatch({ now: () => Date.now() + offsetMs, askWhatsapp, onChanged: vi.fn() })
  watch.onRefusal()
  offsetMs = -ASSUMED_RESTRICTION_MS
  await vi.advanceTimersByTimeAsync(ASSUMED_RESTRICTION_MS)
  expect([watch.isInForce, watch.restriction]).toEqual([false, null])
})

test('a restriction that WhatsApp confirms continues', async () => {
  const { watch, onChanged } = start(one => one.onNotice({ active: true, until: null }))
  watch.onRefusal()
  await vi.advanceTimersByTimeAsync(5 * ASSUMED_RESTRICTION_MS)
  expect(watch.isInForce).toBe(true)
  expect(onChanged).toHaveBeenCalled()
})

test('a restriction longer than the longest timer ends on time', async () => {
  const { watch } = start()
  watch.onNotice({ active: true, until: Date.now() + 40 * DAY_MS })
  await vi.advanceTimersByTimeAsync(40 * DAY_MS - 1)
  expect(watch.restriction).not.toBeNull()
  await vi.advanceTimersByTimeAsync(1)
  expect(watch.restriction).toBeNull()
})

test('a restriction that ended while no node was running is lifted', async () => {
  const { onChanged, askWhatsapp } = start()
  const watch = new RestrictionWatch({ now: Date.now, askWhatsapp, onChanged })
  watch.load({ since: 0, until: Date.now() - 1, reportedByWhatsapp: true })
  expect(watch.isInForce).toBe(false)
  await vi.advanceTimersByTimeAsync(0)
  expect([watch.restriction, onChanged.mock.calls.length]).toEqual([null, 1])
})
