import { describe, expect, test } from 'vitest'
import { firstMessageId, newMessageId } from '../../../../src/domain/ids.ts'
import { accept, acceptPrepared, createConnected, incoming, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const HOUR_MS = 60 * 60_000

/** What the panel counts of messages, and finds in all instances. */
export function panelFindingContract(createHarness: CreateHarness): void {
  describe('messages in the panel', () => {
    const context = withStore(createHarness)

    test('are counted by period and outcome, and failures by reason', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const count = (since = now - HOUR_MS, until = now + HOUR_MS) =>
        store.statistics.messages(instanceId, since, until)
      expect(await count()).toEqual({ sent: 0, failed: 0, received: 0 })
      await accept(store, instanceId)
      for (const code of ['unconfirmed', 'recipient_not_on_whatsapp', 'expired'] as const) {
        const { id, whatsappId } = await acceptPrepared(store, lease)
        await store.messages.recordFailure(lease, { id, whatsappId }, { code, message: 'No.' }, now)
      }
      const sent = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, sent.whatsappId, 'read', now)
      await store.events.storeIncoming(lease, incoming(), now)
      expect(await count()).toEqual({ sent: 1, failed: 3, received: 1 })
      expect(await count(now - 2 * HOUR_MS, now - HOUR_MS)).toEqual({ sent: 0, failed: 0, received: 0 })
      expect(await store.statistics.failures(instanceId, now - HOUR_MS)).toEqual([
        { code: 'unconfirmed', count: 2 },
        { code: 'recipient_not_on_whatsapp', count: 1 },
      ])
      expect(await store.statistics.failures(instanceId, now + HOUR_MS)).toEqual([])
    })

    test('that are still queued are counted for many periods in one call, however long the queue is', async () => {
      const { store, harness } = context
      const { instanceId } = await createConnected(store)
      const now = Date.now()
      const bounds = [-3, -2, -1, 0, 1].map(hours => now + hours * HOUR_MS)
      const queued = () => store.statistics.queued(instanceId, bounds)
      expect(await queued()).toEqual([0, 0, 0, 0])
      const acceptAt = (at: number) => accept(store, instanceId, { id: newMessageId(at) })
      for (const hours of [-4, -2.5, -1.5, -1, 0.5, 0.6, 1]) await acceptAt(now + hours * HOUR_MS)
      expect(await queued()).toEqual([1, 1, 1, 2])
      const sql = harness.kind === 'sqlite' ? `printf('%016d', n)` : `lpad(n::text, 16, '0')`
      await harness.execute(`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 20001)
        insert into messages (instance_id, id, recipient, text, whatsapp_id, state, created_at)
        select '${instanceId}', '${firstMessageId(now)}' || ${sql}, '5511999990000', '', n, 'queued', 0 from numbers`)
      expect(await queued()).toEqual([1, 1, 1, 20_003])
    })

    test('are found in all instances by their ID, sent or received; so are events and numbers', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await createConnected(store)
      const sent = await accept(store, instanceId)
      await store.events.storeIncoming(lease, incoming(), Date.now())
      const [event] = (await store.events.list(instanceId, { limit: 9 })).data
      const find = (kind: 'message' | 'event', id: string) => store.instances.listHolding({ kind, id })
      expect(await find('message', sent.id)).toEqual([instanceId])
      expect(await find('message', event!.messageId!)).toEqual([instanceId])
      expect(await find('event', event!.id)).toEqual([instanceId])
      expect(await find('event', sent.id)).toEqual([])
      await store.numbers.record(lease, '5511900000001', null, Date.now())
      const having = (number: string) => store.instances.listHolding({ kind: 'number', number })
      expect(await having('5511900000001')).toEqual([instanceId])
      expect(await having('5511900000002')).toEqual([])
      await store.instances.delete(instanceId, Date.now())
      expect(await find('message', sent.id)).toEqual([])
    })

    test('order the instances by the traffic since a moment, page by page', async () => {
      const { store } = context
      const busiest = await createConnected(store)
      const quiet = await createConnected(store)
      const busy = await createConnected(store)
      const now = Date.now()
      for (const [index, lease] of [busy, busiest, busiest].entries())
        await store.events.storeIncoming(lease, incoming({ id: `m${index}` }), now)
      const [q, b, bb] = [quiet.instanceId, busy.instanceId, busiest.instanceId]
      const list = async (trafficSince: number) => {
        const found: string[] = []
        for (let cursor: string | undefined; ; ) {
          const page = await store.instances.list(
            { limit: 1, cursor },
            { sort: 'traffic', trafficSince, ids: [q, b, bb] },
          )
          found.push(...page.data.map(({ id }) => id))
          if (page.nextCursor === null) return found
          cursor = page.nextCursor
        }
      }
      expect(await list(now - HOUR_MS)).toEqual([bb, b, q])
      expect(await list(now + HOUR_MS)).toEqual([b, q, bb])
    })
  })
}
