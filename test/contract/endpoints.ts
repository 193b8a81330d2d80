import { describe, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT, DEFAULT_EVENTS, MAX_ENDPOINTS } from '../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../src/domain/ids.ts'
import type { DueDelivery } from '../../src/store/deliveries/deliveries.ts'
import type { EndpointSettings } from '../../src/store/endpoints/endpoints.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import type { Store } from '../../src/store/store.ts'
import { acceptPrepared, attempt, createConnected, incoming, URL, watchHints, withStore } from './fixture.ts'
import type { CreateHarness } from './harness.ts'

const ELSEWHERE = 'https://elsewhere.example/hook'
const SECRET = 'whsec_b3RoZXI='

export function endpointsContract(createHarness: CreateHarness): void {
  describe('endpoints', () => {
    const context = withStore(createHarness)

    async function add({ instanceId }: Lease, settings: Partial<EndpointSettings> = {}): Promise<string> {
      const id = newEndpointId()
      const endpoint = {
        instanceId,
        id,
        secret: SECRET,
        url: ELSEWHERE,
        events: ['*'],
        active: true,
        description: null,
      }
      const outcome = await context.store.endpoints.create({ ...endpoint, ...settings }, Date.now())
      expect(outcome.kind).toBe('created')
      return id
    }

    const receive = (lease: Lease, id: string) =>
      context.store.events.storeIncoming(lease, incoming({ id }), Date.now())

    const firsts = (lease: Lease, endpointId: string) =>
      context.store.deliveries.listFirst(lease.instanceId, 0, 100, endpointId)

    const retries = (lease: Lease, endpointId: string, limit = 100) =>
      context.store.deliveries.listRetries(lease.instanceId, limit, endpointId)

    async function end(lease: Lease, delivery: DueDelivery, kind: 'delivered' | 'exhausted' = 'delivered') {
      await context.store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind })
    }

    async function fail(lease: Lease, delivery: DueDelivery, dueAt: number): Promise<void> {
      const then = { kind: 'retry', dueAt, failedAt: 0 } as const
      await context.store.deliveries.recordAttempt(lease, delivery, attempt(delivery, { status: 500 }), then)
    }

    async function countRows(store: Store, lease: Lease): Promise<number> {
      return (await store.events.list(lease.instanceId, { limit: 100 })).data.length
    }

    test('one event is one row, with a delivery to each endpoint that receives its kind', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const all = await add(lease)
      const group = await add(lease, { events: ['instance.*', 'message.*'] })
      const failures = await add(lease, { events: ['message.failed'] })
      await receive(lease, 'a')
      expect(await countRows(store, lease)).toBe(1)
      const urls = [URL, ELSEWHERE, ELSEWHERE]
      for (const [index, id] of [DEFAULT_ENDPOINT, all, group].entries())
        expect(await firsts(lease, id)).toMatchObject([{ endpointId: id, url: urls[index], kind: 'message.received' }])
      expect(await firsts(lease, failures)).toEqual([])
    })

    test('each endpoint has its own order, and an event that its filter leaves out blocks nothing', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const reads = await add(lease, { events: ['message.read'] })
      const all = await add(lease)
      const message = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, message.whatsappId, 'read', 1_000)
      const kinds = async (id: string) => (await firsts(lease, id)).map(({ kind }) => kind)
      expect(await kinds(reads)).toEqual(['message.read'])
      expect(await kinds(all)).toEqual(['message.sent'])
      expect(await kinds(DEFAULT_ENDPOINT)).toEqual(['message.sent'])
      const hints = watchHints(store, lease.instanceId)
      await end(lease, (await firsts(lease, all))[0]!)
      expect(hints).toEqual(['deliveries'])
      expect(await kinds(all)).toEqual(['message.delivered'])
      expect(await kinds(DEFAULT_ENDPOINT)).toEqual(['message.sent'])
    })

    test('attempts of an event on several endpoints are recorded together, each once', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const id = await add(lease)
      await receive(lease, 'a')
      const [own] = await firsts(lease, DEFAULT_ENDPOINT)
      const [other] = await firsts(lease, id)
      await Promise.all([end(lease, own!), fail(lease, other!, 50), end(lease, own!), fail(lease, other!, 99)])
      const { deliveries } = (await store.events.find(lease.instanceId, own!.eventId))!
      expect(deliveries).toMatchObject([
        { endpointId: DEFAULT_ENDPOINT, state: 'delivered', log: [{ status: 200 }] },
        { endpointId: id, state: 'pending', nextAttemptAt: 50, log: [{ status: 500 }] },
      ])
    })

    test('the list shows the delivery that needs attention, and finds an event by each of its states', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const id = await add(lease)
      await receive(lease, 'a')
      await end(lease, (await firsts(lease, DEFAULT_ENDPOINT))[0]!)
      const shown = async (state?: 'pending' | 'delivered' | 'exhausted') =>
        (await store.events.list(lease.instanceId, { limit: 9 }, { state })).data.map(({ delivery }) => delivery?.state)
      expect([await shown(), await shown('delivered'), await shown('pending')]).toEqual([
        ['pending'],
        ['delivered'],
        ['pending'],
      ])
      await end(lease, (await firsts(lease, id))[0]!, 'exhausted')
      expect([await shown(), await shown('delivered'), await shown('exhausted')]).toEqual([
        ['exhausted'],
        ['delivered'],
        ['exhausted'],
      ])
    })

    test('a new URL and a new filter apply to later events', async () => {
      const { store } = context
      const lease = await createConnected(store, { url: null })
      const id = await add(lease)
      await receive(lease, 'a')
      await store.endpoints.change(lease.instanceId, id, { url: URL })
      await receive(lease, 'b')
      await store.endpoints.change(lease.instanceId, id, { events: ['message.failed'] })
      await receive(lease, 'c')
      expect((await firsts(lease, id)).map(({ url }) => url)).toEqual([ELSEWHERE, URL])
    })

    test('a deleted endpoint keeps its secret until its deliveries have ended, then its row is erased', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const id = await add(lease, { active: false })
      await receive(lease, 'a')
      expect(await store.endpoints.findPosting(instanceId, id, 0)).toMatchObject({ active: false })
      expect(await store.endpoints.delete(instanceId, id, 1)).toBe(true)
      expect(await store.endpoints.delete(instanceId, id, 1)).toBe(false)
      await receive(lease, 'b')
      expect(await store.endpoints.find(instanceId, id)).toBeNull()
      for (let round = 0; round < 2; round += 1) await store.retention.step(0, 0)
      expect(await store.endpoints.listPosting(instanceId)).toEqual([id])
      const secrets = { current: SECRET, previous: [] }
      expect(await store.endpoints.findPosting(instanceId, id, 0)).toEqual({ active: true, secrets })
      const due = await firsts(lease, id)
      expect(due).toHaveLength(1)
      await fail(lease, due[0]!, 5)
      await store.retention.step(0, 0)
      await end(lease, (await retries(lease, id))[0]!)
      expect(await store.endpoints.listPosting(instanceId)).toEqual([])
      await store.retention.step(0, 0)
      expect(await store.endpoints.findPosting(instanceId, id, 0)).toBeNull()
    })

    test('creations at the same time never exceed the limit', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const create = () =>
        store.endpoints.create(
          { instanceId, id: newEndpointId(), secret: SECRET, url: URL, events: ['*'], active: true, description: null },
          0,
        )
      const outcomes = await Promise.all(Array.from({ length: 15 }, create))
      expect(outcomes.filter(({ kind }) => kind === 'created')).toHaveLength(MAX_ENDPOINTS - 1)
      expect(outcomes.filter(({ kind }) => kind === 'too_many')).toHaveLength(15 - MAX_ENDPOINTS + 1)
    })

    test('a deleted instance has no endpoints, but it is erased only after their deliveries have ended', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const id = await add(lease, { active: false })
      await receive(lease, 'a')
      await end(lease, (await firsts(lease, DEFAULT_ENDPOINT))[0]!)
      await store.instances.delete(instanceId, 1)
      expect(await store.endpoints.list(instanceId)).toEqual([])
      expect(await store.endpoints.findPosting(instanceId, id, 0)).toMatchObject({ active: true })
      const next = (await store.leases.acquire('node-1', 1_000)).find(found => found.instanceId === instanceId)!
      expect(await store.instances.erase(next)).toBe(false)
      await end(next, (await firsts(next, id))[0]!)
      expect(await store.instances.erase(next)).toBe(true)
      expect(await store.endpoints.findPosting(instanceId, id, 0)).toBeNull()
    })

    test('the default endpoint is the webhook, and clearing it forgets all but the secret', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      const { secret } = (await store.instances.findWebhook(instanceId))!
      const [endpoint] = await store.endpoints.list(instanceId)
      expect(endpoint).toMatchObject({ id: DEFAULT_ENDPOINT, url: URL, secret, events: DEFAULT_EVENTS, active: true })
      const changes = { url: ELSEWHERE, events: ['*'], active: false, description: 'mine' }
      expect((await store.endpoints.change(instanceId, DEFAULT_ENDPOINT, changes)).kind).toBe('changed')
      expect(await store.endpoints.find(instanceId, DEFAULT_ENDPOINT)).toMatchObject(changes)
      expect(await store.instances.findWebhook(instanceId)).toEqual({ instanceId, url: ELSEWHERE, secret })
      await store.instances.setWebhookUrl(instanceId, null)
      expect((await store.endpoints.change(instanceId, DEFAULT_ENDPOINT, changes)).kind).toBe('no_endpoint')
      await store.instances.setWebhookUrl(instanceId, URL)
      expect(await store.endpoints.list(instanceId)).toEqual([endpoint])
    })

    describe('a retry on request', () => {
      test('has the number that is due next; if it fails, the schedule is unchanged', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        await receive(lease, 'a')
        const [first] = await firsts(lease, DEFAULT_ENDPOINT)
        const { eventId, seq } = first!
        const now = Date.now()
        const retry = (at: number) => store.deliveries.retryNow(instanceId, eventId, seq, at)
        expect(await retry(now)).toEqual({ kind: 'not_waiting' })
        expect(await store.deliveries.retryNow(instanceId, eventId, seq + 1, now)).toEqual({ kind: 'no_delivery' })
        await fail(lease, first!, now + 60_000)
        const hints = watchHints(store, instanceId)
        expect(await retry(now + 1)).toEqual({ kind: 'requested' })
        expect(hints).toEqual(['webhook'])
        expect(await retry(now + 2)).toEqual({ kind: 'too_soon', afterMs: 9_999 })
        expect(await retry(now + 10_001)).toEqual({ kind: 'not_waiting' })
        const [requested] = await retries(lease, DEFAULT_ENDPOINT)
        expect(requested).toMatchObject({ attemptNumber: 2, requested: { at: now + 1, scheduledAt: now + 60_000 } })
        await fail(lease, requested!, now + 60_000)
        await fail(lease, requested!, now + 60_000)
        const [scheduled] = await retries(lease, DEFAULT_ENDPOINT)
        expect(scheduled).toMatchObject({ attemptNumber: 2, dueAt: now + 60_000, requested: null })
        expect(await retry(now + 10_001)).toEqual({ kind: 'requested' })
        // A late report of the first request does not answer the second.
        await fail(lease, requested!, now + 60_000)
        const [again] = await retries(lease, DEFAULT_ENDPOINT)
        await end(lease, again!)
        expect(await retry(now + 30_000)).toEqual({ kind: 'not_waiting' })
        const [delivery] = (await store.events.find(instanceId, eventId))!.deliveries
        expect(delivery).toMatchObject({ state: 'delivered', attempts: 2 })
        expect(
          delivery!.log.map(({ attemptNumber, requested: byRequest, status }) => [attemptNumber, byRequest, status]),
        ).toEqual([
          [1, false, 500],
          [2, true, 500],
          [2, true, 200],
        ])
      })

      test('that arrives while the scheduled attempt is in flight causes no additional attempt', async () => {
        const { store } = context
        const lease = await createConnected(store)
        await receive(lease, 'a')
        const [first] = await firsts(lease, DEFAULT_ENDPOINT)
        const now = Date.now()
        await fail(lease, first!, now + 1_000)
        const [second] = await retries(lease, DEFAULT_ENDPOINT)
        expect((await store.deliveries.retryNow(lease.instanceId, first!.eventId, first!.seq, now)).kind).toBe(
          'requested',
        )
        await fail(lease, second!, now + 6_000)
        const [third] = await retries(lease, DEFAULT_ENDPOINT)
        expect(third).toMatchObject({ attemptNumber: 3, dueAt: now + 6_000, requested: null })
      })

      test('for a whole endpoint includes the deliveries that wait there, in the order of the events, except those retried recently', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        const id = await add(lease)
        const COUNT = 1_100
        await Promise.all(Array.from({ length: COUNT }, (_, index) => receive(lease, `m${index}`)))
        const now = Date.now()
        for (const endpoint of [DEFAULT_ENDPOINT, id]) {
          const due = await store.deliveries.listFirst(instanceId, 0, COUNT, endpoint)
          await Promise.all(due.map((delivery, index) => fail(lease, delivery, now + 100_000 - index)))
        }
        const [recent] = await retries(lease, id)
        expect((await store.deliveries.retryNow(instanceId, recent!.eventId, recent!.seq, now)).kind).toBe('requested')
        expect(await store.deliveries.retryAllNow(instanceId, id, now + 5)).toBe(COUNT - 1)
        expect(await store.deliveries.retryAllNow(instanceId, id, now + 10)).toBe(0)
        const list = async (endpoint: string) =>
          (await retries(lease, endpoint, COUNT)).filter(({ dueAt }) => dueAt > now && dueAt <= now + 5)
        const seqs = (await list(id)).map(({ seq }) => seq)
        expect(seqs).toHaveLength(COUNT - 1)
        expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
        expect(await list(DEFAULT_ENDPOINT)).toEqual([])
      })
    })

    test('a redelivery goes to the named endpoint, or to each that receives the kind and has none pending', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const id = await add(lease)
      await receive(lease, 'a')
      const [own] = await firsts(lease, DEFAULT_ENDPOINT)
      await end(lease, own!, 'exhausted')
      const deaf = await add(lease, { events: ['message.failed'] })
      const redeliver = (endpointId?: string) => store.deliveries.redeliver(instanceId, own!.eventId, 5, endpointId)
      expect(await redeliver('endpoint_absent')).toBe('no_endpoint')
      expect(await redeliver(id)).toBe('still_pending')
      expect(await redeliver(deaf)).toBe('queued')
      expect(await redeliver()).toBe('queued')
      expect(await redeliver()).toBe('still_pending')
      const { deliveries } = (await store.events.find(instanceId, own!.eventId))!
      expect(deliveries.map(({ endpointId, redelivery }) => [endpointId, redelivery])).toEqual([
        [DEFAULT_ENDPOINT, false],
        [id, false],
        [deaf, true],
        [DEFAULT_ENDPOINT, true],
      ])
    })

    test('a redelivery of many events goes to each endpoint at which the event is exhausted', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const id = await add(lease)
      for (const name of ['a', 'b']) await receive(lease, name)
      for (const delivery of await firsts(lease, DEFAULT_ENDPOINT)) await end(lease, delivery)
      for (const delivery of await firsts(lease, id)) await end(lease, delivery, 'exhausted')
      const since = () => store.deliveries.redeliverSince(lease.instanceId, 0, 'exhausted', Date.now() + 1)
      expect(await since()).toEqual({ kind: 'queued', count: 2 })
      expect(await since()).toEqual({ kind: 'queued', count: 0 })
      expect(await firsts(lease, DEFAULT_ENDPOINT)).toEqual([])
      expect(await firsts(lease, id)).toHaveLength(2)
    })
  })
}
