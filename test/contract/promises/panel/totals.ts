import { describe, expect, test } from 'vitest'
import type { WriteEnd } from '../../../../src/store/observer.ts'
import type { StoreTotals } from '../../../../src/store/statistics/statistics.ts'
import {
  accept,
  acceptPrepared,
  attempt,
  createConnected,
  createOwned,
  incoming,
  listReady,
  newInstance,
  withStore,
} from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const MINUTE_MS = 60_000

/** The data that the metrics show: the store's totals, and the calls of its observer. */
export function totalsContract(createHarness: CreateHarness): void {
  describe('totals', () => {
    const context = withStore(createHarness)

    test('count queued messages, unfinished deliveries and connections of all instances', async () => {
      const { store, harness } = context
      expect(await store.statistics.totals()).toMatchObject({
        queued: 0,
        oldestQueuedMs: 0,
        deliveries: { first: 0, retry: 0, blocked: 0 },
        oldestDueMs: 0,
        unowned: 0,
        connections: { connected: 0, unlinked: 0, disconnected: 0 },
        media: { bytes: 0, pending: 0, failed: { media_unavailable: 0, media_not_configured: 0 } },
      } satisfies Partial<{ [K in keyof StoreTotals]: unknown }>)

      const [a, b] = [await createConnected(store), await createConnected(store)]
      await accept(store, a.instanceId)
      const message = await acceptPrepared(store, b)
      await store.messages.recordProgress(b, message.whatsappId, 'read', Date.now())
      await store.events.storeIncoming(a, incoming(), Date.now())
      const failing = (await listReady(store, a.instanceId))[0]!
      const dueAt = Date.now() - MINUTE_MS
      await store.deliveries.recordAttempt(a, failing, attempt(failing, { status: 500 }), {
        kind: 'retry',
        dueAt,
        failedAt: 0,
      })
      await harness.execute(
        `update messages set created_at = ${Date.now() - 5 * MINUTE_MS} where instance_id = '${a.instanceId}'`,
      )
      const totals = await store.statistics.totals()
      expect(totals).toMatchObject({
        queued: 1,
        deliveries: { first: 1, retry: 1, blocked: 2 },
        unowned: 0,
        connections: { connected: 2 },
      })
      expect(totals.oldestQueuedMs).toBeGreaterThanOrEqual(5 * MINUTE_MS - 100)
      expect(totals.oldestQueuedMs).toBeLessThan(6 * MINUTE_MS)
      expect(totals.oldestDueMs).toBeGreaterThanOrEqual(MINUTE_MS - 100)
      expect(totals.oldestDueMs).toBeLessThan(2 * MINUTE_MS)
      expect(totals.bytes).toBeGreaterThan(50_000)
    })

    test('count an unowned instance by its current state, and no deleted instance', async () => {
      const { store, harness } = context
      const before = await store.statistics.totals()
      const orphan = await createConnected(store)
      const away = await createConnected(store)
      const gone = await createOwned(store)
      await harness.execute(`update leases set lease_until = 0 where instance_id = '${orphan.instanceId}'`)
      await harness.execute(`update leases set lease_until = 0 where instance_id = '${away.instanceId}'`)
      await harness.execute(`update connections set last_connected_at = 1 where instance_id = '${away.instanceId}'`)
      await store.instances.delete(gone.instanceId, Date.now())
      await store.instances.create(newInstance(), Date.now())
      const after = await store.statistics.totals()
      const grown = (state: keyof StoreTotals['connections']) => after.connections[state] - before.connections[state]
      expect([grown('connected'), grown('reconnecting'), grown('disconnected'), grown('unlinked')]).toEqual([
        0, 1, 1, 1,
      ])
      expect(after.unowned - before.unowned).toBe(3)
    })
  })

  test('the observer is called for every write, with its duration and its outcome', async () => {
    const harness = await createHarness()
    const reported: [string, WriteEnd][] = []
    try {
      const store = await harness.open({
        observer: {
          onWrite(operation, durationMs, end) {
            expect(durationMs).toBeGreaterThan(0)
            reported.push([operation, end])
          },
          onMessageStep: () => undefined,
        },
      })
      const lease = await createOwned(store)
      await store.connections.record({ ...lease, epoch: lease.epoch + 1 }, {}, 0).catch(() => undefined)
      const { instanceId } = lease
      await store.instances.create(newInstance({ id: instanceId }), 0).catch(() => undefined)
      await store.close()
      expect(reported).toContainEqual(['instances.create', 'committed'])
      expect(reported).toContainEqual(['connections.record', 'fenced'])
      expect(reported).toContainEqual(['instances.create', 'failed'])
    } finally {
      await harness.dispose()
    }
  })
}
