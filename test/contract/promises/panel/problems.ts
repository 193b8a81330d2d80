import { beforeEach, describe, expect, test } from 'vitest'
import type { AfterAttempt } from '../../../../src/domain/events/delivery.ts'
import { DEFAULT_ENDPOINT } from '../../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../../src/domain/ids.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { attempt, createConnected, incoming, take, URL } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'
import { imported } from '../transfers.ts'

const MINUTE_MS = 60_000

/** The problems that alerts are about. */
export function problemsContract(createHarness: CreateHarness): void {
  describe('problems', () => {
    let harness: StoreHarness
    let store: Store
    let lease: Lease

    beforeEach(async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
      return () => harness.dispose()
    })

    const find = async (now = Date.now()) =>
      (await store.alerts.findProblems(now)).map(({ rule, subject }) => {
        expect(subject).toBe(lease.instanceId)
        return rule
      })

    /** Ends the first attempt at an endpoint to post a new event. */
    async function post(now: number, after: AfterAttempt, endpoint = DEFAULT_ENDPOINT, startedAt = now): Promise<void> {
      await store.events.storeIncoming(lease, incoming(), now)
      const delivery = (await store.deliveries.listFirst(lease.instanceId, 0, 100, endpoint)).at(-1)!
      await store.deliveries.recordAttempt(lease, delivery, attempt(delivery, { startedAt }), after)
    }

    const deliver = (now: number) => post(now, { kind: 'delivered' })
    const fail = (now: number, isLast: boolean, endpoint?: string) =>
      post(now, isLast ? { kind: 'exhausted' } : { kind: 'retry', dueAt: now, failedAt: now }, endpoint)

    async function addOther(): Promise<string> {
      const { instanceId } = lease
      const settings = { url: 'https://elsewhere.example/hook', events: ['*'], active: true, description: null }
      const other = { instanceId, id: newEndpointId(), secret: 'whsec_b3RoZXI=', ...settings }
      expect(await store.endpoints.create(other, 1)).toMatchObject({ kind: 'created' })
      return other.id
    }

    test('a connected number with a working webhook has none', async () => {
      expect(await find()).toEqual([])
    })

    test('an imported number that nobody has connected, and an exported one, are not problems', async () => {
      const instance = imported()
      await store.transfers.import(instance, 5)
      expect(await find()).toEqual([])
      await store.transfers.export(instance.id, 6)
      expect(await find()).toEqual([])
    })

    test('a number is down while it is not connected or no node runs it, and lost when the phone unlinks it', async () => {
      await store.connections.record(lease, { state: 'reconnecting', reason: 'Cut.' }, Date.now())
      expect(await find()).toEqual(['number_down'])
      await store.connections.record(lease, { state: 'connected', reason: 'Connected.' }, Date.now())
      await store.leases.release(lease)
      expect(await find()).toEqual(['number_down'])
      const [again] = await store.leases.acquire('node-2', 10)
      const gone = { state: 'logged_out', reason: 'Unlinked.' } as const
      await store.connections.record(again!, { ...gone, cause: 'logged_out_by_phone' }, Date.now())
      expect(await find()).toEqual(['linking_lost'])
      for (const cause of ['logged_out_as_asked', 'logout_unconfirmed'] as const) {
        await store.connections.record(again!, { ...gone, cause }, Date.now())
        expect(await find()).toEqual([])
      }
    })

    test('a number that is linked again is down since then, not since its last connection before the logout', async () => {
      const now = Date.now()
      const lastWeek = now - 7 * 24 * 60 * MINUTE_MS
      const { instanceId } = lease
      const since = async () => (await store.alerts.findProblems(now))[0]?.since
      const record = (change: Parameters<Store['connections']['record']>[1]) =>
        store.connections.record(lease, change, now)
      await record({ state: 'logged_out', reason: 'Unlinked.', cause: 'logged_out_by_phone' })
      await harness.execute(
        `update connections set last_connected_at = ${lastWeek} where instance_id = '${instanceId}'`,
      )
      await record({ state: 'connecting', reason: 'Linked.', cause: 'first_login' })
      expect(await since()).toBe(now)
      await record({ state: 'reconnecting', reason: 'Cut.', cause: 'cut' })
      expect(await since()).toBe(now)
    })

    test('an exported number that is connected again is down since then', async () => {
      const now = Date.now()
      const instance = imported()
      await store.transfers.import(instance, 5)
      const again = await take(store, instance.id)
      await store.connections.record(again, { state: 'connected', reason: 'Connected.' }, 6)
      await store.leases.release(again)
      expect(await store.transfers.export(instance.id, 7)).toMatchObject({ kind: 'exported' })
      const owner = await take(store, instance.id)
      await store.connections.record(owner, { state: 'reconnecting', reason: 'Connecting.', cause: 'logging_in' }, now)
      expect(await store.alerts.findProblems(now)).toMatchObject([{ rule: 'number_down', since: now }])
    })

    test('a webhook fails when events are retried for a while or the last one was given up', async () => {
      const now = Date.now()
      await fail(now - 2 * MINUTE_MS, false)
      expect(await find(now)).toEqual(['webhook_failing'])
      const [{ detail } = { detail: '' }] = await store.alerts.findProblems(now)
      expect(detail).toBe('The webhook at receiver.example does not accept events.')
      expect(await find(now - 90_000)).toEqual([])
      await fail(now, true)
      expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
    })

    test('a webhook does not fail because the first attempt to post an old event failed, or a redelivery', async () => {
      const now = Date.now()
      const yesterday = now - 24 * 60 * MINUTE_MS
      const retry = { kind: 'retry', dueAt: now, failedAt: now } as const
      await post(yesterday, retry, DEFAULT_ENDPOINT, now)
      expect(await find(now)).toEqual([])
      await post(yesterday + 1, { kind: 'delivered' })
      const { data } = await store.events.list(lease.instanceId, { limit: 1 })
      await store.deliveries.redeliver(lease.instanceId, data[0]!.id, now)
      const again = (await store.deliveries.listFirst(lease.instanceId, 0, 100)).at(-1)!
      await store.deliveries.recordAttempt(lease, again, attempt(again, { startedAt: now }), retry)
      expect(await find(now)).toEqual([])
      expect(await store.alerts.findProblems(now + 2 * MINUTE_MS)).toMatchObject([
        { rule: 'webhook_failing', since: null },
      ])
    })

    test('when a later event was delivered, only the undelivered events are left', async () => {
      const now = Date.now()
      await fail(now - 10, true)
      await deliver(now)
      expect(await find(now)).toEqual(['events_given_up'])
      const [{ detail } = { detail: '' }] = await store.alerts.findProblems(now)
      expect(detail).toBe('1 event was given up after the last attempt.')
    })

    test('a webhook that is paused does not fail, but what it has missed stays a problem', async () => {
      const now = Date.now()
      const setActive = (active: boolean) => store.endpoints.change(lease.instanceId, DEFAULT_ENDPOINT, { active })
      await fail(now - 2 * MINUTE_MS, false)
      await setActive(false)
      expect(await find(now)).toEqual([])
      await setActive(true)
      expect(await find(now)).toEqual(['webhook_failing'])
      await fail(now, true)
      await setActive(false)
      expect(await find(now)).toEqual(['events_given_up'])
    })

    test('events for a deleted endpoint, or for a default one without a URL, are not problems', async () => {
      const now = Date.now()
      const other = await addOther()
      await store.instances.setWebhookUrl(lease.instanceId, null)
      for (const endpoint of [other, DEFAULT_ENDPOINT]) {
        if (endpoint === DEFAULT_ENDPOINT) await store.instances.setWebhookUrl(lease.instanceId, URL)
        await fail(now - 3 * MINUTE_MS, true, endpoint)
        expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
        await fail(now - 2 * MINUTE_MS, false, endpoint)
        expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
        await store.endpoints.delete(lease.instanceId, endpoint, now)
        expect(await find(now)).toEqual([])
      }
    })

    test('an endpoint fails although another one gave up a later event and works again', async () => {
      const now = Date.now()
      const other = await addOther()
      await fail(now - 30, true, other)
      await fail(now - 20, true)
      await deliver(now - 10)
      expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
      const details = (await store.alerts.findProblems(now)).map(({ detail }) => detail)
      expect(details).toEqual([
        'The webhook at elsewhere.example does not accept events.',
        '2 events were given up after the last attempt.',
      ])
    })

    test('a deleted instance has none', async () => {
      await fail(Date.now(), true)
      await store.instances.delete(lease.instanceId, Date.now())
      expect(await find()).toEqual([])
    })
  })
}
