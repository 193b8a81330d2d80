import { describe, expect, test } from 'vitest'
import { createConnected, createOwned, newInstance, take, watchHints, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const MINUTE_MS = 60_000

export function connectionsContract(createHarness: CreateHarness): void {
  describe('connections', () => {
    const context = withStore(createHarness)

    test('each request of the management API increments the version of the goal', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const hints = watchHints(store, id)
      expect(await store.connections.requestConnect(id, '5511999990000')).toBe(true)
      expect(hints.splice(0)).toContain('goal')
      const first = await store.connections.find(id)
      expect(first).toMatchObject({ goal: 'online', pairingPhone: '5511999990000' })
      await store.connections.requestConnect(id, null)
      const second = await store.connections.find(id)
      expect(second).toMatchObject({ goal: 'online', pairingPhone: null, goalVersion: first!.goalVersion + 1 })
      expect(await store.connections.requestLogout(id)).toBe(true)
      expect(await store.connections.find(id)).toMatchObject({
        goal: 'logged_out',
        goalVersion: second!.goalVersion + 1,
      })
      expect(hints.splice(0)).toContain('goal')
      expect(await store.connections.requestConnect('inst_absent', null)).toBe(false)
      expect(await store.connections.requestLogout('inst_absent')).toBe(false)
      expect(await store.connections.find('inst_absent')).toBeNull()
    })

    test('a request to connect follows a logout that is not carried out yet, and does not replace it', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      const find = async () => (await store.connections.find(instanceId))!
      const settle = async (goal: 'idle' | 'logged_out') => {
        const { goalVersion } = await find()
        await store.connections.record(lease, { goal, ifGoalVersion: goalVersion }, 1)
      }
      await store.connections.requestLogout(instanceId)
      await store.connections.requestConnect(instanceId, '5511999990000')
      await store.connections.requestConnect(instanceId, null)
      const relinked = await find()
      expect(relinked).toMatchObject({ goal: 'relinked', pairingPhone: null, goalVersion: 3 })
      await settle('logged_out')
      expect(await find()).toMatchObject({ goal: 'relinked' })
      await settle('idle')
      expect(await find()).toMatchObject({ goal: 'online', goalVersion: 3 })
      await settle('idle')
      expect(await find()).toMatchObject({ goal: 'idle' })

      await store.connections.requestLogout(instanceId)
      await store.connections.requestConnect(instanceId, null)
      await store.connections.requestLogout(instanceId)
      expect(await find()).toMatchObject({ goal: 'logged_out' })
    })

    test('the other instances that are linked to a number are listed, except sandboxes, deleted and unlinked ones', async () => {
      const { store } = context
      const phone = '5511977770000'
      const linked = async (
        changes: Partial<Parameters<typeof newInstance>[0]> = {},
        number: string | null = phone,
      ) => {
        const lease = await createOwned(store, changes)
        await store.connections.record(lease, { state: 'connected', phone: number }, 1)
        return lease
      }
      const first = await linked({ name: 'First' })
      const second = await linked({ name: 'Second' })
      const deleted = await linked({ name: 'Deleted' })
      const sandbox = await linked({ name: 'Sandbox', kind: 'sandbox' })
      await linked({ name: 'Other' }, '5511977770001')
      const unlinked = await linked({ name: 'Unlinked' }, null)
      await store.instances.delete(deleted.instanceId, 2)
      const listFor = async ({ instanceId }: typeof first) => {
        const record = (await store.connections.find(instanceId))!
        return (await store.connections.listSameNumber(record, 10)).map(({ name }) => name)
      }
      expect(await listFor(first)).toEqual(['Second'])
      expect(await listFor(second)).toEqual(['First'])
      for (const lease of [sandbox, unlinked]) expect(await listFor(lease)).toEqual([])
    })

    test('a record of the owner changes only the given fields', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const hints = watchHints(store, lease.instanceId)
      await store.connections.record(lease, { state: 'linking', reason: 'Scan.', qr: '2@abc', qrExpiresAt: 77 }, 10)
      expect(hints).toContain('connection')
      expect(await store.connections.find(lease.instanceId)).toMatchObject({
        state: 'linking',
        reason: 'Scan.',
        qr: '2@abc',
        qrExpiresAt: 77,
        since: 10,
        lastConnectedAt: null,
      })
      await store.connections.record(lease, { qr: null, pairingCode: 'ABCD1234' }, 20)
      expect(await store.connections.find(lease.instanceId)).toMatchObject({
        state: 'linking',
        reason: 'Scan.',
        qr: null,
        qrExpiresAt: 77,
        pairingCode: 'ABCD1234',
        since: 10,
      })
      await store.connections.record(lease, { state: 'linking', goal: 'idle', phone: '551188' }, 30)
      expect(await store.connections.find(lease.instanceId)).toMatchObject({ since: 10, goal: 'idle', phone: '551188' })
      await store.connections.record(lease, {}, 40)
      await store.connections.record(lease, { state: 'connecting' }, 50)
      expect(await store.connections.find(lease.instanceId)).toMatchObject({ state: 'connecting', since: 50 })
    })

    test('a goal that the owner settles for an older version does not undo a newer one', async () => {
      const { store } = context
      const lease = await createOwned(store)
      await store.connections.requestConnect(lease.instanceId, null)
      const { goalVersion } = (await store.connections.find(lease.instanceId))!
      await store.connections.requestConnect(lease.instanceId, null)
      const settled = { state: 'stopped', reason: 'Refused.', goal: 'idle', ifGoalVersion: goalVersion } as const
      await store.connections.record(lease, settled, 1)
      expect(await store.connections.find(lease.instanceId)).toMatchObject({ state: 'stopped', goal: 'online' })
      await store.connections.record(lease, { ...settled, ifGoalVersion: goalVersion + 1 }, 2)
      expect(await store.connections.find(lease.instanceId)).toMatchObject({ goal: 'idle' })
    })

    test('the time of the last connection is set while connected and when the connection ends, and not afterwards', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const lastConnectedAt = async () => (await store.connections.find(lease.instanceId))!.lastConnectedAt
      const before = Date.now()
      await store.connections.record(lease, { state: 'connected', reason: 'Connected.' }, 1)
      const connected = await lastConnectedAt()
      expect(connected).toBeGreaterThan(before - 1_000)
      expect(connected).toBeLessThan(Date.now() + 1_000)
      await store.connections.record(lease, { state: 'reconnecting', reason: 'Lost.' }, 2)
      const ended = await lastConnectedAt()
      expect(ended).toBeGreaterThanOrEqual(connected!)
      await store.connections.record(lease, { state: 'reconnecting', reason: 'Still.' }, 3)
      expect(await lastConnectedAt()).toBe(ended)
    })

    test('renewing the lease updates the time of the last connection, only while connected', async () => {
      const { harness, store } = context
      const connected = await createConnected(store)
      const away = await createConnected(store)
      await store.connections.record(away, { state: 'reconnecting', reason: 'Lost.' }, 2)
      await harness.execute('update connections set last_connected_at = 1')
      await store.leases.renew(connected.owner)
      expect((await store.connections.find(connected.instanceId))!.lastConnectedAt).toBeGreaterThan(1)
      expect((await store.connections.find(away.instanceId))!.lastConnectedAt).toBe(1)
    })

    test('after a crash the time of the last connection is the one that the former owner recorded', async () => {
      const { harness, store } = context
      const { instanceId } = await createConnected(store)
      await harness.execute(`update leases set lease_until = 1 where instance_id = '${instanceId}'`)
      await harness.execute(`update connections set last_connected_at = 1 where instance_id = '${instanceId}'`)
      const lease = await take(store, instanceId, 'node-2')
      await store.connections.record(lease, { state: 'reconnecting', reason: 'Connecting.' }, Date.now())
      expect(await store.connections.find(instanceId)).toMatchObject({ state: 'reconnecting', lastConnectedAt: 1 })
      expect((await store.instances.find(instanceId))!.state).toBe('disconnected')
    })

    test('an instance without a connection for five minutes is disconnected, even if its owner crashed', async () => {
      const { harness, store } = context
      const lease = await createConnected(store)
      const id = lease.instanceId
      const state = async () => (await store.instances.find(id))!.state
      const away = (ms: number) =>
        harness.execute(`update connections set last_connected_at = ${Date.now() - ms} where instance_id = '${id}'`)
      await away(10 * MINUTE_MS)
      expect(await state()).toBe('connected')
      await harness.execute(`update leases set lease_until = 0 where instance_id = '${id}'`)
      expect(await state()).toBe('disconnected')
      await away(4 * MINUTE_MS)
      expect(await state()).toBe('reconnecting')
    })
  })
}
