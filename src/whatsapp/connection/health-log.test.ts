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
  const reports: HealthReport[] = []
  const connections = {
    findHealth: vi.fn(async () => ({ ...NOTHING, ...stored })),
    recordHealth: vi.fn(async (_: Lease, report: HealthReport) => void reports.push(report)),
  }
  const failed = vi.fn()
  const log = new HealthLog({ lease: LEASE, connections, now: Date.now, onFailed: failed })
  log.start()
  return { log, reports, connections, failed }
}

test('many frames cause one write each half minute, and no frames cause none', async () => {
  const { log, reports, connections } = start()
  await vi.advanceTimersByTimeAsync(2 * HALF_MINUTE_MS)
  expect(connections.recordHealth).not.toHaveBeenCalled()
  for (let n = 0; n < 1_000; n++) log.frame()
  const seenAt = Date.now()
  await vi.advanceTimersByTimeAsync(3 * HALF_MINUTE_MS)
  expect(reports).toEqual([{ ...NOTHING, lastFrameAt: seenAt }])
  await log.stop()
})

test('a close is recorded immediately, and only once', async () => {
  const { log, reports } = start()
  log.closed(428)
  await vi.advanceTimersByTimeAsync(0)
  log.acknowledged(40)
  await log.stop()
  expect(reports.map(({ closes }) => closes.map(({ code }) => code))).toEqual([[428], []])
})

test('the first acknowledgement is recorded at once, later ones each half minute', async () => {
  const { log, reports } = start()
  for (const latencyMs of [40, 50]) {
    log.acknowledged(latencyMs)
    await vi.advanceTimersByTimeAsync(0)
  }
  expect(reports.map(({ acknowledgement }) => acknowledgement?.latencyMs)).toEqual([40])
  await log.stop()
  expect(reports.map(({ acknowledgement }) => acknowledgement?.latencyMs)).toEqual([40, 50])
})

test('values of the previous owner stay until there are newer ones', async () => {
  const { log, reports } = start({ undecryptable: 5, lastUndecryptableAt: 7, lastFrameAt: 9 })
  log.undecryptable()
  await log.stop()
  expect(reports).toEqual([{ ...NOTHING, lastFrameAt: 9, undecryptable: 6, lastUndecryptableAt: Date.now() }])
})

test('after a failed write the next one contains everything', async () => {
  const { log, reports, connections, failed } = start()
  connections.recordHealth.mockRejectedValueOnce(new StoreUnavailable('away'))
  log.closed(503)
  await vi.advanceTimersByTimeAsync(0)
  log.closed(428)
  await vi.advanceTimersByTimeAsync(0)
  expect(reports.flatMap(({ closes }) => closes.map(({ code }) => code))).toEqual([503, 428])
  expect(failed).not.toHaveBeenCalled()
  await log.stop()
})

test('a lost lease is reported', async () => {
  const { log, connections, failed } = start()
  connections.recordHealth.mockRejectedValue(new LeaseLost('inst_test'))
  log.closed(428)
  await log.stop()
  expect(failed).toHaveBeenCalledWith(expect.any(LeaseLost))
})
