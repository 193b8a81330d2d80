import { afterEach, describe, expect, test } from 'vitest'
import { MAX_OPERATOR_ENDPOINTS, OPERATOR_PREFIX } from '../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../src/domain/ids.ts'
import type { DueDelivery } from '../../../src/store/deliveries/deliveries.ts'
import type { EndpointSettings } from '../../../src/store/endpoints/endpoints.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import { attempt, bodyOf, createOwned, incoming, URL, watchHints, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const ELSEWHERE = 'https://operator.example/hook'
const SECRET = 'whsec_b3BlcmF0b3I='
const UNLINKED = { state: 'unlinked', cause: 'code_expired', reason: 'Connect.' } as const
const CONNECTED = { state: 'connected', cause: 'connected', reason: 'Connected.' } as const
const STOPPED = { state: 'stopped', cause: 'banned', reason: 'Banned.' } as const

export function operatorEndpointsContract(createHarness: CreateHarness): void {
  describe('operator endpoints', () => {
    const context = withStore(createHarness)

    afterEach(async () => {
      for (const { id } of await context.store.operatorEndpoints.list())
        await context.store.operatorEndpoints.delete(id, Date.now())
    })

    async function add(settings: Partial<EndpointSettings> = {}): Promise<string> {
      const id = newEndpointId(OPERATOR_PREFIX)
      const endpoint = { id, secret: SECRET, url: ELSEWHERE, events: ['instance.*'], active: true, description: null }
      const outcome = await context.store.operatorEndpoints.create({ ...endpoint, ...settings }, Date.now())
      expect(outcome.kind).toBe('created')
      return id
    }

    async function connect(lease: Lease): Promise<void> {
      for (const state of [UNLINKED, CONNECTED]) await context.store.connections.record(lease, state, Date.now())
    }

    const firsts = ({ instanceId }: Lease, id: string) => context.store.deliveries.listFirst(instanceId, 0, 100, id)
    const kindsOf = async (lease: Lease, id: string) => (await firsts(lease, id)).map(({ kind }) => kind)

    async function fail(lease: Lease, delivery: DueDelivery, dueAt: number): Promise<void> {
      const then = { kind: 'retry', dueAt, failedAt: 0 } as const
      await context.store.deliveries.recordAttempt(lease, delivery, attempt(delivery, { status: 500 }), then)
    }

    async function end(lease: Lease, delivery: DueDelivery, kind: 'delivered' | 'exhausted' = 'delivered') {
      await context.store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind })
    }

    test('receive the events about the connections of all instances, including a later one, each once', async () => {
      const { store } = context
      const before = await createOwned(store)
      const all = await add()
      const stops = await add({ events: ['instance.stopped'] })
      const after = await createOwned(store)
      for (const lease of [before, after]) {
        await connect(lease)
        await store.events.storeIncoming(lease, incoming(), Date.now())
        await store.connections.record(lease, STOPPED, Date.now())
        expect(await kindsOf(lease, all)).toEqual(['instance.connected', 'instance.stopped'])
        expect(await kindsOf(lease, stops)).toEqual(['instance.stopped'])
        const [first] = await firsts(lease, all)
        expect([first!.url, bodyOf(first!).instanceId]).toEqual([ELSEWHERE, lease.instanceId])
      }
    })

    test('have a lane only while an instance has deliveries for them, and each event sends a hint', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const id = await add()
      expect(await store.endpoints.listPosting(lease.instanceId)).toEqual([])
      const hints: string[] = []
      const stop = store.hints.on('webhook', () => hints.push('webhook'), lease.instanceId)
      await connect(lease)
      stop()
      expect(hints).toEqual(['webhook'])
      expect(await store.endpoints.listPosting(lease.instanceId)).toEqual([id])
      expect(await store.operatorEndpoints.listWaiting(id)).toEqual([lease.instanceId])
      const [delivery] = await firsts(lease, id)
      await fail(lease, delivery!, 50)
      expect(await store.endpoints.listPosting(lease.instanceId)).toEqual([id])
      expect(await store.operatorEndpoints.countDeliveries(id, 0)).toEqual({ waiting: 1, retrying: 1, givenUp: 0 })
      const [retry] = await store.deliveries.listRetries(lease.instanceId, 1, id)
      await end(lease, retry!, 'exhausted')
      expect(await store.endpoints.listPosting(lease.instanceId)).toEqual([])
      expect(await store.operatorEndpoints.countDeliveries(id, 0)).toEqual({ waiting: 0, retrying: 0, givenUp: 1 })
      const later = Date.now() + 1_000
      expect((await store.operatorEndpoints.countDeliveries(id, later)).givenUp).toBe(0)
    })

    test('are not among the endpoints of an instance, nor its deliveries among those of its token', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      const id = await add()
      await connect(lease)
      expect(await store.endpoints.list(instanceId)).toEqual([])
      expect(await store.endpoints.find(instanceId, id)).toBeNull()
      expect((await store.endpoints.change(instanceId, id, { active: false })).kind).toBe('no_endpoint')
      expect(await store.endpoints.delete(instanceId, id, 1)).toBe(false)
      expect(await store.endpoints.replaceSecret(instanceId, id, 'whsec_AA==', 1)).toBe(false)
      const [delivery] = await firsts(lease, id)
      const { eventId, seq } = delivery!
      await fail(lease, delivery!, Date.now() + 60_000)
      const now = Date.now()
      expect(await store.events.find(instanceId, eventId)).toMatchObject({ delivery: null, deliveries: [] })
      expect(await store.deliveries.retryNow(instanceId, eventId, seq, now)).toEqual({ kind: 'no_delivery' })
      expect((await store.events.find(instanceId, eventId, 'all'))!.deliveries).toMatchObject([{ endpointId: id }])
      expect((await store.deliveries.retryNow(instanceId, eventId, seq, now, 'all')).kind).toBe('requested')
      const [retry] = await store.deliveries.listRetries(instanceId, 1, id)
      await end(lease, retry!, 'exhausted')
      expect(await store.deliveries.retryNow(instanceId, eventId, seq, now)).toEqual({ kind: 'no_delivery' })
      expect(await store.deliveries.redeliver(instanceId, eventId, 1)).toBe('no_webhook')
      expect(await store.deliveries.redeliver(instanceId, eventId, 1, id)).toBe('no_endpoint')
      const hints = watchHints(store, instanceId)
      expect(await store.deliveries.redeliver(instanceId, eventId, 1, id, 'all')).toBe('queued')
      expect(hints).toContain('deliveries')
      expect(await kindsOf(lease, id)).toEqual(['instance.connected'])
    })

    test('take no place among the attempts that the token of an instance reads', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      const settings = { url: URL, events: ['instance.*'], active: true, description: null }
      const own = { instanceId, id: newEndpointId(), secret: SECRET, ...settings }
      await store.endpoints.create(own, 0)
      const id = await add()
      await connect(lease)
      const [delivery] = await firsts(lease, id)
      for (let attemptNumber = 1; attemptNumber <= 100; attemptNumber += 1)
        await fail(lease, { ...delivery!, attemptNumber }, 50)
      const [ofOwn] = await firsts(lease, own.id)
      await end(lease, ofOwn!)
      const { deliveries } = (await store.events.find(instanceId, delivery!.eventId))!
      expect(deliveries.map(({ endpointId, log }) => [endpointId, log.length])).toEqual([[own.id, 1]])
    })

    test('do not count as a webhook when many events are redelivered and none of them receives those events', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      const since = () => store.deliveries.redeliverSince(instanceId, 0, 'delivered', Date.now() + 1)
      const id = await add()
      await connect(lease)
      expect(await since()).toEqual({ kind: 'no_webhook' })
      await end(lease, (await firsts(lease, id))[0]!, 'delivered')
      const count = () => store.statistics.countEnded(instanceId, 0, 'delivered')
      expect(await count()).toBe(1)
      expect(await since()).toEqual({ kind: 'queued', count: 1 })
      await end(lease, (await firsts(lease, id))[0]!, 'delivered')
      await store.operatorEndpoints.delete(id, Date.now())
      expect(await count()).toBe(0)
    })

    test('that fail are not a problem of an instance whose own webhook works', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const id = await add()
      await connect(lease)
      const ids = [lease.instanceId]
      const troubles = async () => (await store.statistics.troubles(0, ids)).length
      const deliveries = async () => (await store.statistics.activity(ids, 0, 0))[0]!.deliveries
      await fail(lease, (await firsts(lease, id))[0]!, 50)
      expect([await troubles(), (await deliveries()).retrying]).toEqual([0, 0])
      const [retry] = await store.deliveries.listRetries(lease.instanceId, 1, id)
      await end(lease, retry!, 'exhausted')
      expect([await troubles(), await deliveries()]).toMatchObject([0, { givenUp: 0, lastGivenUpAt: null }])
    })

    test('are not in the statistics of an instance', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const id = await add()
      await connect(lease)
      await store.connections.record(lease, STOPPED, Date.now())
      const [first, second] = await firsts(lease, id)
      await end(lease, first!)
      await end(lease, second!, 'exhausted')
      const { latencies, ...outcomes } = await store.statistics.outcomes(lease.instanceId, 0, Date.now() + 1)
      expect(Object.values(outcomes)).toEqual(Object.values(outcomes).map(() => 0))
      expect(latencies.filter(({ count }) => count > 0)).toEqual([])
    })

    test('a change applies to later events, and a pause holds the deliveries of all instances', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const id = await add()
      await connect(lease)
      const hints: string[] = []
      const stop = store.hints.on('webhook', () => hints.push('webhook'), lease.instanceId)
      const changes = { url: URL, events: ['instance.stopped'], active: false, description: 'on call' }
      const changed = await store.operatorEndpoints.change(id, changes)
      stop()
      expect(changed).toMatchObject({ id, secret: SECRET, ...changes })
      expect(await store.operatorEndpoints.find(id)).toEqual(changed)
      expect(hints).toEqual(['webhook'])
      expect((await store.endpoints.findPosting(lease.instanceId, id, 0))?.active).toBe(false)
      await store.connections.record(lease, STOPPED, Date.now())
      await connect(lease)
      expect((await firsts(lease, id)).map(({ kind, url }) => [kind, url])).toEqual([
        ['instance.connected', ELSEWHERE],
        ['instance.stopped', URL],
      ])
    })

    test('a deleted one completes its deliveries, even if it was paused, then its row is erased', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      const id = await add({ active: false })
      await connect(lease)
      expect(await store.operatorEndpoints.delete(id, 1)).toBe(true)
      expect(await store.operatorEndpoints.delete(id, 1)).toBe(false)
      expect(await store.operatorEndpoints.change(id, { active: true })).toBeNull()
      expect(await store.operatorEndpoints.replaceSecret(id, SECRET, 1)).toBeNull()
      expect((await store.operatorEndpoints.list()).map(endpoint => endpoint.id)).not.toContain(id)
      await store.connections.record(lease, STOPPED, Date.now())
      expect(await kindsOf(lease, id)).toEqual(['instance.connected'])
      for (let round = 0; round < 2; round += 1) await store.retention.step(0, 0)
      const secrets = { current: SECRET, previous: [] }
      expect(await store.endpoints.findPosting(instanceId, id, 0)).toEqual({ secrets, active: true })
      await end(lease, (await firsts(lease, id))[0]!)
      for (let round = 0; round < 2; round += 1) await store.retention.step(0, 0)
      expect(await store.endpoints.findPosting(instanceId, id, 0)).toBeNull()
    })

    test('a deleted instance completes its deliveries to a paused one, then it is erased', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      const id = await add({ active: false })
      await connect(lease)
      await store.instances.delete(instanceId, Date.now())
      expect((await store.endpoints.findPosting(instanceId, id, 0))?.active).toBe(true)
      const [owner] = (await store.leases.acquire('node-1', 100)).filter(taken => taken.instanceId === instanceId)
      expect(await store.instances.erase(owner!)).toBe(false)
      await end(owner!, (await firsts(owner!, id))[0]!)
      expect(await store.instances.erase(owner!)).toBe(true)
      expect(await store.operatorEndpoints.listWaiting(id)).toEqual([])
    })

    test('a new secret signs, and for 24 h the old one signs as well', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const id = await add()
      const replaced = await store.operatorEndpoints.replaceSecret(id, 'whsec_bmV3', 1_000)
      const until = 1_000 + 24 * 3_600_000
      expect(replaced).toMatchObject({ secret: 'whsec_bmV3', previousSecretUntil: until })
      for (const [at, previous] of [
        [until - 1, [SECRET]],
        [until, []],
      ] as const) {
        const secrets = { current: 'whsec_bmV3', previous }
        expect(await store.operatorEndpoints.findSecrets(id, at)).toEqual(secrets)
        expect((await store.endpoints.findPosting(lease.instanceId, id, at))?.secrets).toEqual(secrets)
      }
      expect(await store.endpoints.findSecretChangedAt(lease.instanceId, id)).toBe(1_000)
      await store.operatorEndpoints.replaceSecret(id, 'whsec_bmV4dA==', 2_000)
      const secrets = { current: 'whsec_bmV4dA==', previous: ['whsec_bmV3', SECRET] }
      expect(await store.operatorEndpoints.findSecrets(id, until - 1)).toEqual(secrets)
    })

    test('are limited to ten, even if they are created concurrently, and an instance may still create its own', async () => {
      const { store } = context
      const create = () =>
        store.operatorEndpoints.create(
          { id: newEndpointId(OPERATOR_PREFIX), secret: SECRET, url: URL, events: [], active: true, description: null },
          1,
        )
      const outcomes = await Promise.all(Array.from({ length: MAX_OPERATOR_ENDPOINTS + 2 }, create))
      expect(outcomes.filter(({ kind }) => kind === 'too_many')).toHaveLength(2)
      expect(await store.operatorEndpoints.list()).toHaveLength(MAX_OPERATOR_ENDPOINTS)
      const { instanceId } = await createOwned(store)
      const own = { instanceId, id: 'endpoint_own', secret: SECRET, url: URL, events: ['*'], active: true }
      expect((await store.endpoints.create({ ...own, description: null }, 1)).kind).toBe('created')
      expect((await store.endpoints.list(instanceId)).map(({ id }) => id)).toEqual(['endpoint_own'])
    })

    test('that are dead are one problem each, however many instances have events for them', async () => {
      const { store } = context
      const leases = [await createOwned(store), await createOwned(store)]
      const id = await add()
      for (const lease of leases) await connect(lease)
      const later = Date.now() + 3_600_000
      const subjects = [id, ...leases.map(({ instanceId }) => instanceId)]
      const problems = async () =>
        (await store.alerts.findProblems(later))
          .filter(({ rule, subject }) => subjects.includes(subject) && rule !== 'number_down')
          .map(({ rule, subject }) => [rule, subject])
      expect(await problems()).toEqual([])
      for (const lease of leases) await fail(lease, (await firsts(lease, id))[0]!, 50)
      expect(await problems()).toEqual([['webhook_failing', id]])
      await store.operatorEndpoints.change(id, { active: false })
      expect(await problems()).toEqual([])
      await store.operatorEndpoints.change(id, { active: true })
      for (const lease of leases) {
        const [retry] = await store.deliveries.listRetries(lease.instanceId, 1, id)
        await end(lease, retry!, 'exhausted')
      }
      expect(await problems()).toEqual([
        ['webhook_failing', id],
        ['events_given_up', id],
      ])
      await store.operatorEndpoints.change(id, { active: false })
      expect(await problems()).toEqual([['events_given_up', id]])
      await store.operatorEndpoints.change(id, { active: true })
      await store.connections.record(leases[0]!, STOPPED, Date.now())
      await end(leases[0]!, (await firsts(leases[0]!, id))[0]!)
      expect(await problems()).toEqual([['events_given_up', id]])
      await store.operatorEndpoints.delete(id, 1)
      expect(await problems()).toEqual([])
    })
  })
}
