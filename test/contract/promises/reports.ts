import { describe, expect, test } from 'vitest'
import type { StoredConnection } from '../../../src/domain/connection/connection.ts'
import { INSTANCE_EVENT_KINDS } from '../../../src/domain/events/event.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import type { Store } from '../../../src/store/store.ts'
import { bodyOf, createOwned, incoming, listReady, newInstance, take, URL, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const PHONE = '5511900000000'
const LINKING = { state: 'linking', cause: 'scan_qr_code', reason: 'Scan.' } as const
const CONNECTED = { state: 'connected', cause: 'connected', reason: 'Connected.', phone: PHONE } as const
const RESTRICTED = { state: 'connected', cause: 'restricted', reason: 'Restricted.' } as const
const CUT = { state: 'reconnecting', cause: 'cut', reason: 'Cut.' } as const
const LOGGING_IN = { state: 'reconnecting', cause: 'logging_in', reason: 'Connecting.' } as const
const BANNED = { state: 'stopped', cause: 'banned', reason: 'Check the phone.' } as const
const LOGGED_OUT = { state: 'logged_out', cause: 'logged_out_by_phone', reason: 'Logged out.', phone: null } as const
const UNLINKED = { state: 'unlinked', cause: 'code_expired', reason: 'Connect again.' } as const

export function reportsContract(createHarness: CreateHarness): void {
  describe('the events of a connection', () => {
    const context = withStore(createHarness)

    async function kindsOf(store: Store, instanceId: string): Promise<string[]> {
      const page = await store.events.readFeed(instanceId, { limit: 100, maxBytes: 1 << 20 })
      return page!.events.map(({ kind }) => kind.replace(/^\w+\./, ''))
    }

    async function recordAll(lease: Lease, changes: readonly Partial<StoredConnection>[]): Promise<void> {
      for (const change of changes) await context.store.connections.record(lease, change, 1_000)
    }

    const away = (lease: Lease, minutes: number) =>
      context.harness.execute(
        `update connections set last_connected_at = ${Date.now() - minutes * 60_000} where instance_id = '${lease.instanceId}'`,
      )

    test('report each visible change once, in order with the other events', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      await recordAll(lease, [
        LINKING,
        { ...LINKING, qr: 'another code' },
        { state: 'connecting' },
        CONNECTED,
        CONNECTED,
      ])
      await store.events.storeIncoming(lease, incoming(), 1_000)
      await recordAll(lease, [RESTRICTED, { ...RESTRICTED, reason: 'Longer.' }, CONNECTED, BANNED, BANNED])
      await store.connections.record(lease, CONNECTED, 2_000)
      await recordAll(lease, [LOGGED_OUT, LOGGED_OUT, LINKING, UNLINKED, LINKING])
      expect(await kindsOf(store, instanceId)).toEqual([
        'linking',
        'connected',
        'received',
        'restricted',
        'connected',
        'stopped',
        'connected',
        'logged_out',
        'linking',
        'linking',
      ])
    })

    test('carry the cause, the reason and the number', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      await recordAll(lease, [LINKING, CONNECTED, LOGGED_OUT])
      const page = await store.events.readFeed(instanceId, { limit: 10, maxBytes: 1 << 20 })
      const timestamp = new Date(1_000).toISOString()
      expect(page!.events.map(event => bodyOf(event))).toEqual([
        {
          event: 'instance.linking',
          instanceId,
          timestamp,
          data: { cause: 'scan_qr_code', reason: 'Scan.', phone: null },
        },
        {
          event: 'instance.connected',
          instanceId,
          timestamp,
          data: { cause: 'connected', reason: 'Connected.', phone: PHONE },
        },
        {
          event: 'instance.logged_out',
          instanceId,
          timestamp,
          data: { cause: 'logged_out_by_phone', reason: 'Logged out.', phone: PHONE },
        },
      ])
      const [event] = (await store.events.list(instanceId, { limit: 1 })).data
      expect(event).toMatchObject({ kind: 'instance.logged_out', messageId: null, with: '', delivery: null })
    })

    test('each kind has a cause, a reason and the number, which is null while linking', async () => {
      const { store } = context
      const lease = await createOwned(store)
      await recordAll(lease, [LINKING, CONNECTED, RESTRICTED, CONNECTED, CUT])
      await away(lease, 6)
      expect(await store.connections.report(lease, 1)).toBe(true)
      await recordAll(lease, [BANNED, LOGGED_OUT])
      const page = await store.events.readFeed(lease.instanceId, { limit: 10, maxBytes: 1 << 20 })
      const told = new Map(page!.events.map(event => [event.kind, bodyOf(event)['data']]))
      expect([...told.keys()].toSorted()).toEqual(INSTANCE_EVENT_KINDS.toSorted())
      const dataOf = ({ cause, reason }: { cause: string; reason: string }) => ({ cause, reason, phone: PHONE })
      expect(told.get('instance.linking')).toEqual({ ...dataOf(LINKING), phone: null })
      expect(told.get('instance.restricted')).toEqual(dataOf(RESTRICTED))
      expect(told.get('instance.disconnected')).toEqual(dataOf(CUT))
      expect(told.get('instance.stopped')).toEqual(dataOf(BANNED))
      expect(told.get('instance.connected')).toEqual(dataOf(CONNECTED))
      expect(told.get('instance.logged_out')).toEqual(dataOf(LOGGED_OUT))
    })

    test('a connection that flaps causes none until it has been down for five minutes', async () => {
      const { store } = context
      const lease = await createOwned(store)
      await recordAll(lease, [LINKING, CONNECTED])
      for (let count = 0; count < 20; count += 1) await recordAll(lease, [CUT, LOGGING_IN, CONNECTED])
      await recordAll(lease, [CUT])
      await away(lease, 4)
      await recordAll(lease, [LOGGING_IN, CUT])
      expect(await store.connections.report(lease, 1)).toBe(false)
      expect(await kindsOf(store, lease.instanceId)).toEqual(['linking', 'connected'])
      await away(lease, 6)
      await recordAll(lease, [LOGGING_IN])
      expect(await store.connections.report(lease, 1)).toBe(false)
      await recordAll(lease, [CUT, LOGGING_IN, CUT])
      expect(await store.connections.report(lease, 1)).toBe(true)
      await recordAll(lease, [CONNECTED])
      expect(await kindsOf(store, lease.instanceId)).toEqual(['linking', 'connected', 'disconnected', 'connected'])
    })

    test('a connection that is down for five minutes is reported even if its owner records nothing else', async () => {
      const { store } = context
      const lease = await createOwned(store)
      await recordAll(lease, [LINKING, CONNECTED, CUT])
      await away(lease, 6)
      expect(await store.connections.report(lease, 1)).toBe(true)
      expect(await store.connections.report(lease, 1)).toBe(true)
      expect(await kindsOf(store, lease.instanceId)).toEqual(['linking', 'connected', 'disconnected'])
    })

    test('an instance that was linked before there were events reports problems only', async () => {
      const { store } = context
      const lease = await createOwned(store)
      await recordAll(lease, [CONNECTED, CUT, CONNECTED])
      expect(await kindsOf(store, lease.instanceId)).toEqual([])
      await recordAll(lease, [BANNED, CONNECTED])
      expect(await kindsOf(store, lease.instanceId)).toEqual(['stopped', 'connected'])
    })

    test('are posted to the endpoints that subscribe to them, and not to the webhook of the contract', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      await store.instances.setWebhookUrl(instanceId, URL)
      await recordAll(lease, [LINKING, CONNECTED])
      expect(await listReady(store, instanceId)).toEqual([])
      expect((await store.events.list(instanceId, { limit: 10 }, { state: 'not_posted' })).data).toEqual([])
      const { webhookSecret: secret } = newInstance()
      const endpoint = { instanceId, id: 'endpoint_1', url: URL, secret, active: true, description: null }
      await store.endpoints.create({ ...endpoint, events: ['instance.stopped', 'instance.connected'] }, 1)
      await recordAll(lease, [BANNED, LINKING, CONNECTED])
      const posted = await store.deliveries.listFirst(instanceId, 0, 10, 'endpoint_1')
      expect(posted.map(({ kind }) => kind)).toEqual(['instance.stopped', 'instance.connected'])
      expect(await listReady(store, instanceId)).toEqual([])
    })

    test('the former owner records none, and a takeover repeats none', async () => {
      const { harness, store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      await recordAll(lease, [LINKING, CONNECTED])
      await harness.execute(`update leases set lease_until = 1 where instance_id = '${instanceId}'`)
      const next = await take(store, instanceId, 'node-2')
      await expect(store.connections.record(lease, BANNED, 1)).rejects.toThrow()
      await expect(store.connections.report(lease, 1)).rejects.toThrow()
      await recordAll(next, [LOGGING_IN, CONNECTED])
      expect(await kindsOf(store, instanceId)).toEqual(['linking', 'connected'])
    })
  })
}
