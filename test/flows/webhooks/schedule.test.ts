import { monitorEventLoopDelay } from 'node:perf_hooks'
import { describe, expect, inject, test } from 'vitest'
import { RETRY_DELAYS_MS } from '../../../src/domain/events/delivery.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { TEST_WITHIN_MS } from '../../deadlines.ts'
import { createReceiver } from '../../receiver.ts'
import { until } from '../../until.ts'
import { WebhookHarness } from './harness.ts'

const OTHER_DELAY_MS = 3_000
const SHOWN_DELAYS = RETRY_DELAYS_MS.slice(0, 3)
const NANOSECONDS = 1e6
/** Less than the difference between two delays. */
const TOLERANCE_MS = 3_000

describe('the contract’s own delays', () => {
  test.concurrent.each(ONE_STORE)(
    '1 s, 5 s and 30 s after the end of the previous attempt, on %s',
    async kind => {
      await using harness = await WebhookHarness.open(kind, inject('postgresUrl'), { retryDelaysMs: RETRY_DELAYS_MS })
      await using receiver = await createReceiver()
      receiver.answerWith({ kind: 'status', status: 500, delayMs: 100 })
      const instance = await harness.addInstance(receiver.url)
      const loop = monitorEventLoopDelay({ resolution: 5 })
      loop.enable()
      await instance.receive()
      await receiver.waitFor(SHOWN_DELAYS.length + 1)
      loop.disable()
      // A delay because the machine was busy does not count against the schedule.
      const tolerance = TOLERANCE_MS + 2 * (loop.max / NANOSECONDS)
      for (const [index, delay] of SHOWN_DELAYS.entries()) {
        const [before, next] = [receiver.requests[index]!, receiver.requests[index + 1]!]
        expect(next.receivedAt - before.receivedAt).toBeGreaterThanOrEqual(delay)
        expect(next.receivedAt - before.endedAt!).toBeLessThan(delay + tolerance)
      }
    },
    TEST_WITHIN_MS,
  )
})

test.each(ONE_STORE)('a retry keeps its due time on a node with a shorter schedule, on %s', async kind => {
  await using harness = await WebhookHarness.open(kind, inject('postgresUrl'), { retryDelaysMs: [OTHER_DELAY_MS] })
  await using receiver = await createReceiver()
  receiver.answerWith({ kind: 'status', status: 500 })
  const instance = await harness.addInstance(receiver.url)
  await instance.receive()
  await until('the failed attempt', async () => (await instance.log())[0]?.delivery?.attempts === 1)
  await harness.stopLanes()
  harness.startLanes({ retryDelaysMs: [100] })
  await receiver.waitFor(2)
  const [first, second] = receiver.requests
  expect(second!.receivedAt - first!.endedAt!).toBeGreaterThanOrEqual(OTHER_DELAY_MS)
})
