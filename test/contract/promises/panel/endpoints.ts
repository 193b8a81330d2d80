import { describe, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT } from '../../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../../src/domain/ids.ts'
import type { DueDelivery } from '../../../../src/store/deliveries/deliveries.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import { acceptPrepared, attempt, createConnected, incoming, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

/** What the panel shows of each endpoint. */
export function panelEndpointsContract(createHarness: CreateHarness): void {
  describe('endpoints in the panel', () => {
    const context = withStore(createHarness)

    async function addEndpoint({ instanceId }: Lease, events = ['*']): Promise<string> {
      const id = newEndpointId()
      const settings = { url: 'https://elsewhere.example/hook', events, active: true, description: null }
      await context.store.endpoints.create({ instanceId, id, secret: 'whsec_b3RoZXI=', ...settings }, 0)
      return id
    }

    async function end(lease: Lease, endpointId: string, kind: 'delivered' | 'exhausted', startedAt: number) {
      const { deliveries } = context.store
      const [due] = await deliveries.listFirst(lease.instanceId, 0, 1, endpointId)
      const outcome = kind === 'delivered' ? {} : { status: null, error: 'timeout' }
      await deliveries.recordAttempt(lease, due!, attempt(due!, { startedAt, durationMs: 5, ...outcome }), { kind })
      return due!
    }

    async function failOnce(lease: Lease, due: DueDelivery, startedAt: number): Promise<void> {
      const failed = attempt(due, { startedAt, durationMs: 1, status: 503 })
      const then = { kind: 'retry', dueAt: startedAt + 60_000, failedAt: startedAt + 1 } as const
      await context.store.deliveries.recordAttempt(lease, due, failed, then)
    }

    test('each has its own counts, last success and last failure', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const other = await addEndpoint(lease)
      const ids = [DEFAULT_ENDPOINT, other]
      const idle = { retrying: 0, givenUp: 0, lastDeliveredAt: null, lastGivenUpAt: null }
      expect(await store.statistics.endpoints(instanceId, ids, 0)).toEqual(
        ids.map(endpointId => ({ endpointId, recent: idle, waiting: 0, lastFailure: null })),
      )
      for (const id of ['a', 'b', 'c']) await store.events.storeIncoming(lease, incoming({ id }), Date.now())
      await end(lease, DEFAULT_ENDPOINT, 'delivered', 1_000)
      await end(lease, other, 'exhausted', 2_000)
      await end(lease, other, 'delivered', 3_000)
      const message = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, message.whatsappId, 'read', Date.now())
      const read = (givenUpSince: number) => store.statistics.endpoints(instanceId, ids, givenUpSince)
      // Two incoming messages wait for the default endpoint, one for the other, and the three events of a message for both.
      expect(await read(0)).toEqual([
        { endpointId: DEFAULT_ENDPOINT, recent: { ...idle, lastDeliveredAt: 1_005 }, waiting: 5, lastFailure: null },
        {
          endpointId: other,
          recent: { retrying: 0, givenUp: 1, lastDeliveredAt: 3_005, lastGivenUpAt: 2_005 },
          waiting: 4,
          lastFailure: { at: 2_005, status: null, error: 'timeout' },
        },
      ])
      const [due] = await store.deliveries.listFirst(instanceId, 0, 1, other)
      await failOnce(lease, due!, 4_000)
      const [, retried] = await read(Date.now() + 60_000)
      expect(retried).toMatchObject({
        recent: { retrying: 1, givenUp: 0 },
        waiting: 4,
        lastFailure: { at: 4_001, status: 503, error: null },
      })
    })

    test('events that only a deleted endpoint missed are neither counted as given up nor offered for redelivery', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const other = await addEndpoint(lease)
      for (const id of ['a', 'b']) await store.events.storeIncoming(lease, incoming({ id }), Date.now())
      for (const _ of ['a', 'b']) await end(lease, other, 'exhausted', 1_000)
      await end(lease, DEFAULT_ENDPOINT, 'exhausted', 500)
      await end(lease, DEFAULT_ENDPOINT, 'delivered', 2_000)
      const ended = (state: 'delivered' | 'exhausted') => store.statistics.countEnded(instanceId, 0, state)
      const recent = async () => (await store.statistics.activity([instanceId], 0, 0))[0]!.deliveries
      expect([await ended('exhausted'), await ended('delivered')]).toEqual([2, 1])
      expect(await recent()).toMatchObject({ givenUp: 2, lastGivenUpAt: 1_005 })

      await store.endpoints.delete(instanceId, other, Date.now())
      expect([await ended('exhausted'), await ended('delivered')]).toEqual([1, 1])
      expect(await recent()).toMatchObject({ givenUp: 1, lastGivenUpAt: 505 })

      await store.instances.setWebhookUrl(instanceId, null)
      expect([await ended('exhausted'), await ended('delivered')]).toEqual([0, 0])
      expect(await recent()).toMatchObject({ givenUp: 0, lastGivenUpAt: null })
    })

    test('an event that several endpoints missed is counted once, before, during and by its redelivery', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const other = await addEndpoint(lease)
      await store.events.storeIncoming(lease, incoming(), Date.now())
      for (const id of [DEFAULT_ENDPOINT, other]) await end(lease, id, 'exhausted', 1_000)
      expect(await store.statistics.countEnded(instanceId, 0, 'exhausted')).toBe(1)
      expect((await store.statistics.activity([instanceId], 0, 0))[0]!.deliveries.givenUp).toBe(1)
      const redelivered = await store.deliveries.redeliverSince(instanceId, 0, 'exhausted', Date.now())
      expect(redelivered).toEqual({ kind: 'queued', count: 1 })
      expect(await store.statistics.countRedelivering(instanceId)).toBe(1)
      await end(lease, DEFAULT_ENDPOINT, 'delivered', 2_000)
      expect(await store.statistics.countRedelivering(instanceId)).toBe(1)
      await end(lease, other, 'delivered', 2_000)
      expect(await store.statistics.countRedelivering(instanceId)).toBe(0)
    })

    test.each([
      { events: ['message.*'], count: 2 },
      { events: ['message.failed'], count: 0 },
      { events: ['instance.*'], count: 1 },
      { events: ['*'], count: 3 },
    ])(
      'of the events that were never posted, those that $events selects are counted and redelivered',
      async ({ events, count }) => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        await store.instances.setWebhookUrl(instanceId, null)
        for (const id of ['a', 'b']) await store.events.storeIncoming(lease, incoming({ id }), Date.now())
        await store.connections.record(lease, { state: 'stopped', reason: 'Banned.' }, Date.now())
        expect(await store.statistics.countNotPosted(instanceId, 0)).toBe(0)
        await addEndpoint(lease, events)
        expect(await store.statistics.countNotPosted(instanceId, 0)).toBe(count)
        const redelivered = await store.deliveries.redeliverSince(instanceId, 0, 'not_posted', Date.now())
        expect(redelivered).toEqual({ kind: 'queued', count })
      },
    )

    test('the log of one shows only its deliveries, also by state and page by page', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.events.storeIncoming(lease, incoming({ id: 'before' }), Date.now())
      const other = await addEndpoint(lease)
      for (const id of ['a', 'b', 'c']) await store.events.storeIncoming(lease, incoming({ id }), Date.now())
      for (let round = 0; round < 4; round += 1) await end(lease, DEFAULT_ENDPOINT, 'delivered', 1_000)
      const { eventId: lost } = await end(lease, other, 'exhausted', 1_000)
      const [due] = await store.deliveries.listFirst(instanceId, 0, 1, other)
      await failOnce(lease, due!, 1_000)
      const list = async (
        endpointId: string,
        state?: 'delivered' | 'exhausted' | 'pending' | 'retrying' | 'blocked',
      ) => {
        const found: [string, string | undefined, string | undefined][] = []
        for (let cursor: string | undefined; ; ) {
          const page = await store.events.list(instanceId, { limit: 2, cursor }, { endpointId, state })
          found.push(
            ...page.data.map(({ id, delivery }): (typeof found)[number] => [id, delivery?.endpointId, delivery?.state]),
          )
          if (page.nextCursor === null) return found
          cursor = page.nextCursor
        }
      }
      expect((await list(DEFAULT_ENDPOINT)).map(([, ...shown]) => shown)).toEqual(
        Array(4).fill([DEFAULT_ENDPOINT, 'delivered']),
      )
      expect((await list(other)).map(([, ...shown]) => shown)).toEqual([
        [other, 'pending'],
        [other, 'pending'],
        [other, 'exhausted'],
      ])
      expect(await list(other, 'exhausted')).toEqual([[lost, other, 'exhausted']])
      expect(await list(DEFAULT_ENDPOINT, 'exhausted')).toEqual([])
      expect(await list(other, 'retrying')).toEqual([[due!.eventId, other, 'pending']])
      expect(await list(other, 'pending')).toHaveLength(2)
      expect(await list(other, 'blocked')).toEqual([])
      expect(await list('endpoint_absent')).toEqual([])
    })
  })
}
