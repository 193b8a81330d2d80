import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ConnectionHealth, HealthReport } from '../../store/connections/connections.ts'
import { LeaseLost, StoreUnavailable } from '../../store/errors.ts'
import type { Lease } from '../../store/leases/leases.ts'
import { HealthLog } from './health-log.ts'

const LEASE: Lease = { instanceId: 'inst_test', owner: 'node', epoch: 1 }
const NOTHING: ConnectionHealth = {
  lastFrameAt: null,
  acknowledgement: null,
  undecryptable: 0,
  lastUndecryptableAt: null,
  closes: [],
}
const HALF_MINUTE_MS = 30_000

beforeEach(() => vi.useFakeTimers({ now: 1_700_000_000_000 }))
afterEach(() => vi.useRealTimers())

function start(stored: Partial<ConnectionHealth> = {}) {
  const told: HealthReport[] = []
  const connections = {
    findHealth: vi.fn(async () => ({ ...NOTHING, ...stored })),
    recordHealth: vi.fn(async (_: Lease, report: HealthReport) => void told.push(report)),
  }
  const failed = vi.fn()
  const log = new HealthLog({ lease: LEASE, connections, now: Date.now, onFailed: failed })
  log.start()
  return { log, told, connections, failed }
}

test('any number of frames is one write each half minute, and none when nothing was seen', async () => {
  const { log, told, connections } = start()
  await vi.advanceTimersByTimeAsync(2 * HALF_MINUTE_MS)
  expect(connections.recordHealth).not.toHaveBeenCalled()
  for (let n = 0; n < 1_000; n++) log.frame()
  const seenAt = Date.now()
  await vi.advanceTimersByTimeAsync(3 * HALF_MINUTE_MS)
  expect(told).toEqual([{ ...NOTHING, lastFrameAt: seenAt }])
  await log.stop()
})

test('a close is told at once, and once', async () => {
  const { log, told } = start()
  log.closed(428)
  await vi.advanceTimersByTimeAsync(0)
  log.acknowledged(40)
  await log.stop()
  expect(told.map(({ closes }) => closes.map(({ code }) => code))).toEqual([[428], []])
})

test('what was told before, by whoever had the connection, stands until something newer is seen', async () => {
  const { log, told } = start({ undecryptable: 5, lastUndecryptableAt: 7, lastFrameAt: 9 })
  log.undecryptable()
  await log.stop()
  expect(told).toEqual([{ ...NOTHING, lastFrameAt: 9, undecryptable: 6, lastUndecryptableAt: Date.now() }])
})

test('a store that is away is told the next time, and nothing is left out', async () => {
  const { log, told, connections, failed } = start()
  connections.recordHealth.mockRejectedValueOnce(new StoreUnavailable('away'))
  log.closed(503)
  await vi.advanceTimersByTimeAsync(0)
  log.closed(428)
  await vi.advanceTimersByTimeAsync(0)
  expect(told.flatMap(({ closes }) => closes.map(({ code }) => code))).toEqual([503, 428])
  expect(failed).not.toHaveBeenCalled()
  await log.stop()
})

test('a lease that is gone is passed on', async () => {
  const { log, connections, failed } = start()
  connections.recordHealth.mockRejectedValue(new LeaseLost('inst_test'))
  log.closed(428)
  await log.stop()
  expect(failed).toHaveBeenCalledWith(expect.any(LeaseLost))
})
