import { describe, expect, test } from 'vitest'
import { RECONNECTING_MS } from '../../../src/domain/connection/connection.ts'
import { DEFAULT_ENDPOINT } from '../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../src/domain/ids.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import { attempt, createConnected, createOwned, incoming, listReady, URL, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const HOUR_MS = 60 * 60_000

/** What the first page of the panel warns of. */
export function troublesContract(createHarness: CreateHarness): void {
  describe('troubles', () => {
    const context = withStore(createHarness)
    /** The troubles of these instances only, because the tests share a store. */
    const troubles = async (leases: readonly Lease[], since = 0) => {
      const ids = leases.map(({ instanceId }) => instanceId)
      return (await context.store.statistics.troubles(since)).filter(({ instance }) => ids.includes(instance.id))
    }

    test('an instance that works, or that nobody has linked yet, is not one', async () => {
      const { store } = context
      const [connected, never] = [await createConnected(store), await createOwned(store)]
      const unlinked = await createConnected(store)
      for (const cause of ['logged_out_as_asked', 'logout_unconfirmed'] as const) {
        await store.connections.record(unlinked, { state: 'logged_out', reason: 'As requested.', cause }, Date.now())
        expect(await troubles([connected, never, unlinked])).toEqual([])
      }
    })

    test('numbers that are stopped, logged out, restricted or could not be linked are listed with their cause', async () => {
      const { store } = context
      const now = Date.now()
      const stopped = await createConnected(store)
      await store.connections.record(stopped, { state: 'stopped', reason: 'Banned.', cause: 'banned' }, now)
      const loggedOut = await createConnected(store)
      const byPhone = { state: 'logged_out', reason: 'Unlinked.', cause: 'logged_out_by_phone' } as const
      await store.connections.record(loggedOut, byPhone, now)
      const restricted = await createConnected(store)
      const restriction = { since: now, until: now + HOUR_MS, reportedByWhatsapp: true }
      await store.connections.record(restricted, { restriction }, now)
      const unlinkable = await createOwned(store)
      await store.connections.record(unlinkable, { state: 'unlinked', reason: 'No.', cause: 'unreachable' }, now)
      const crashed = await createOwned(store)
      await store.connections.record(crashed, { state: 'unlinked', reason: 'No.', cause: 'thread_crashed' }, now)
      const past = await createConnected(store)
      await store.connections.record(past, { restriction: { ...restriction, until: now - 1_000 } }, now)
      const found = await troubles([stopped, loggedOut, restricted, unlinkable, crashed, past])
      expect(found.map(({ instance: { id, state }, cause }) => [id, state, cause])).toEqual([
        [stopped.instanceId, 'stopped', 'banned'],
        [loggedOut.instanceId, 'logged_out', 'logged_out_by_phone'],
        [restricted.instanceId, 'connected', expect.anything()],
        [unlinkable.instanceId, 'unlinked', 'unreachable'],
        [crashed.instanceId, 'unlinked', 'thread_crashed'],
      ])
      expect(found.map(({ restrictedUntil }) => restrictedUntil)).toEqual([null, null, now + HOUR_MS, null, null])
    })

    test('of given instances include those of no other instance, in the order of creation', async () => {
      const { store } = context
      const leases = [await createConnected(store), await createConnected(store), await createConnected(store)]
      const [one, two, foreign] = leases.map(({ instanceId }) => instanceId)
      for (const lease of leases) await store.connections.record(lease, { state: 'stopped', reason: 'Stopped.' }, 5)
      const reached = async (...ids: string[]) =>
        (await store.statistics.troubles(0, ids)).map(({ instance }) => instance.id)
      expect(await reached(two!, 'inst_unknown', one!)).toEqual([one, two])
      expect(await reached()).toEqual([])
      expect((await troubles(leases)).map(({ instance }) => instance.id)).toEqual([one, two, foreign])
    })

    test('a number that reconnects is listed only once it counts as disconnected', async () => {
      const { harness, store } = context
      const lease = await createConnected(store)
      await store.connections.record(lease, { state: 'reconnecting', reason: 'Cut.', cause: 'cut' }, Date.now())
      expect(await troubles([lease])).toEqual([])
      const before = Date.now() - RECONNECTING_MS - 1_000
      await harness.execute(
        `update connections set last_connected_at = ${before} where instance_id = '${lease.instanceId}'`,
      )
      expect((await troubles([lease])).map(({ instance }) => instance.state)).toEqual(['disconnected'])
    })

    test('a webhook is listed while events are retried, or recent ones were given up', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const made = Date.now()
      for (let count = 0; count < 2; count += 1) await store.events.storeIncoming(lease, incoming(), made)
      expect(await troubles([lease], made)).toEqual([])
      const [first, second] = await listReady(store, lease.instanceId)
      const retry = { kind: 'retry', dueAt: made + HOUR_MS, failedAt: made } as const
      await store.deliveries.recordAttempt(lease, first!, attempt(first!), retry)
      expect(await troubles([lease], made)).toMatchObject([{ hasGivenUp: false, isRetrying: true }])
      await store.deliveries.recordAttempt(lease, second!, attempt(second!), { kind: 'exhausted' })
      expect(await troubles([lease], made)).toMatchObject([{ hasGivenUp: true, isRetrying: true }])
      expect(await troubles([lease], made + HOUR_MS)).toMatchObject([{ hasGivenUp: false, isRetrying: true }])
      await store.deliveries.redeliver(lease.instanceId, second!.eventId, made)
      expect(await troubles([lease], made)).toMatchObject([{ hasGivenUp: false, isRetrying: true }])
    })

    test('events that were given up at an endpoint that is deleted are no trouble', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const made = Date.now()
      const giveUp = async (endpoint: string) => {
        await store.events.storeIncoming(lease, incoming(), made)
        const delivery = (await store.deliveries.listFirst(instanceId, 0, 10, endpoint)).at(-1)!
        await store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'exhausted' })
      }
      await giveUp(DEFAULT_ENDPOINT)
      expect(await troubles([lease], made)).toMatchObject([{ hasGivenUp: true }])
      await store.endpoints.delete(instanceId, DEFAULT_ENDPOINT, made)
      expect(await troubles([lease], made)).toEqual([])
      const other = { instanceId, id: newEndpointId(), url: URL, secret: 'whsec_b3RoZXI=', description: null }
      await store.endpoints.create({ ...other, events: ['*'], active: true }, made)
      await giveUp(other.id)
      expect(await troubles([lease], made)).toMatchObject([{ hasGivenUp: true }])
      await store.endpoints.delete(instanceId, other.id, made)
      expect(await troubles([lease], made)).toEqual([])
    })

    test('a deleted instance is not listed', async () => {
      const { store } = context
      const lease = await createConnected(store)
      await store.connections.record(lease, { state: 'stopped', reason: 'Banned.', cause: 'banned' }, Date.now())
      expect(await troubles([lease])).toHaveLength(1)
      await store.instances.delete(lease.instanceId, Date.now())
      expect(await troubles([lease])).toEqual([])
    })
  })
}
