import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DatabaseClock } from './clock.ts'
import type { Session } from './engine/backend.ts'
import type { Core } from './engine/core.ts'
import { Statements } from './engine/statement.ts'
import { StoredLeases } from './leases/stored-leases.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const HOUR_MS = 3_600_000

/** A clock whose measurements take `roundTripMs`, and fail while the database is unreachable. */
async function openClock() {
  const database = { aheadMs: 0, roundTripMs: 0, isReachable: true }
  const query = async () => {
    await new Promise(resolve => setTimeout(resolve, database.roundTripMs))
    if (!database.isReachable) throw new Error('unreachable')
    return [{ now: 1_000_000 + performance.now() + database.aheadMs }]
  }
  const opened = DatabaseClock.open({ query } as unknown as Session, new Statements('postgres'), undefined)
  await vi.advanceTimersByTimeAsync(1)
  const clock = await opened
  const errorMs = () => Math.abs(clock.now() - performance.now() - 1_000_000 - database.aheadMs)
  return { clock, database, errorMs, [Symbol.dispose]: () => clock.close() }
}

/** The monotonic clock stands still meanwhile. */
function suspend(database: { aheadMs: number }): void {
  vi.setSystemTime(Date.now() + HOUR_MS)
  database.aheadMs += HOUR_MS
}

test('after a suspension of the machine, a call waits until the clock is right', async () => {
  using it = await openClock()
  suspend(it.database)
  // A measurement that is slower than usual still corrects the clock.
  it.database.roundTripMs = 800
  const errorMs = it.clock.settled().then(it.errorMs)
  await vi.advanceTimersByTimeAsync(800)
  expect(await errorMs).toBeLessThan(401)
})

test('after a suspension, the steady clock is right too, and never goes back', async () => {
  using it = await openClock()
  const behindMs = () => it.clock.now() - it.clock.steady()
  suspend(it.database)
  const settled = it.clock.settled()
  await vi.advanceTimersByTimeAsync(1)
  await settled
  expect(Math.abs(behindMs())).toBeLessThan(2)
  // The machine is that of the database, and its clock is set back.
  vi.setSystemTime(Date.now() - HOUR_MS)
  it.database.aheadMs -= HOUR_MS
  await vi.advanceTimersByTimeAsync(10_000)
  expect(behindMs()).toBeLessThan(-HOUR_MS + 100)
})

test('after a suspension, the steady clock is right, even if the wall clock is corrected late and that measurement is slow', async () => {
  using it = await openClock()
  it.database.aheadMs += HOUR_MS
  await vi.advanceTimersByTimeAsync(10_000)
  vi.setSystemTime(Date.now() + HOUR_MS)
  it.database.roundTripMs = 600
  const settled = it.clock.settled()
  await vi.advanceTimersByTimeAsync(600)
  await settled
  it.database.roundTripMs = 0
  await vi.advanceTimersByTimeAsync(10_000)
  expect(Math.abs(it.clock.now() - it.clock.steady())).toBeLessThan(2)
})

test('after a suspension, leases are renewed only when the clock is right', async () => {
  using it = await openClock()
  const leases = new StoredLeases(
    { statements: new Statements('postgres'), write: async () => [] } as unknown as Core,
    it.clock,
  )
  suspend(it.database)
  it.database.roundTripMs = 100
  const errorMs = leases.renew('node').then(it.errorMs)
  await vi.advanceTimersByTimeAsync(100)
  expect(await errorMs).toBeLessThan(51)
})

test('a clock that cannot be measured after a suspension delays a call by 2 s, and is right as soon as the database answers', async () => {
  using it = await openClock()
  suspend(it.database)
  it.database.isReachable = false
  const settled = it.clock.settled().then(() => 'settled')
  await vi.advanceTimersByTimeAsync(2_001)
  expect(await Promise.race([settled, Promise.resolve('waiting')])).toBe('settled')
  it.database.isReachable = true
  await vi.advanceTimersByTimeAsync(251)
  expect(it.errorMs()).toBeLessThan(2)
})

test('a measurement that took long on one side only does not move the clock', async () => {
  using it = await openClock()
  it.database.aheadMs += 2
  it.database.roundTripMs = 3_000
  await vi.advanceTimersByTimeAsync(13_100)
  expect(it.errorMs()).toBeLessThan(5)
})

test("setting the machine's wall clock changes nothing", async () => {
  using it = await openClock()
  for (const moveMs of [HOUR_MS, -2 * HOUR_MS]) {
    vi.setSystemTime(Date.now() + moveMs)
    expect(it.errorMs()).toBeLessThan(2)
    const settled = it.clock.settled()
    await vi.advanceTimersByTimeAsync(1)
    await settled
    expect(it.errorMs()).toBeLessThan(2)
  }
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
