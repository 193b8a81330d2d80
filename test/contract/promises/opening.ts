import { afterEach, describe, expect, test } from 'vitest'
import { ForeignDatabase, NewerSchema, StoreUnavailable, WrongMasterKey } from '../../../src/store/errors.ts'
import { accept, createConnected, newInstance } from '../fixture.ts'
import type { CreateHarness, StoreHarness } from '../harness.ts'

export function openingContract(createHarness: CreateHarness): void {
  describe('opening and closing', () => {
    let harness: StoreHarness

    afterEach(() => harness.dispose())

    test('written data is there when the store is opened again', async () => {
      harness = await createHarness()
      const first = await harness.open()
      const { instanceId } = await createConnected(first)
      const message = await accept(first, instanceId)
      await first.close()
      const second = await harness.open()
      expect(await second.messages.find(instanceId, message.id)).toMatchObject({ state: 'queued' })
      await expect(second.ping()).resolves.toBeUndefined()
    })

    test('a wrong master key is refused, and nothing is written', async () => {
      harness = await createHarness()
      const masterKey = new Uint8Array(32).fill(9)
      await (await harness.open()).close()
      const [row] = await harness.execute('select max(name) as name from kysely_migration')
      const last = row!['name']
      await harness.execute(`delete from kysely_migration where name = '${last}'`)
      await expect(harness.open({ masterKey })).rejects.toThrow(WrongMasterKey)
      expect(await harness.execute(`select 1 from kysely_migration where name = '${last}'`)).toEqual([])
      await harness.execute(`insert into kysely_migration (name, timestamp) values ('${last}', '2099-01-01')`)
      await expect(harness.open({ masterKey })).rejects.toThrow(WrongMasterKey)
      await (await harness.open()).close()
    })

    test('a database with tables of another application is refused and left unchanged', async () => {
      harness = await createHarness()
      await harness.execute('create table messages (body text)')
      await harness.execute("insert into messages (body) values ('not ours')")
      await expect(harness.open()).rejects.toThrow(ForeignDatabase)
      expect(await harness.execute('select body from messages')).toEqual([{ body: 'not ours' }])
    })

    test('a schema newer than this version is refused, and nothing is written', async () => {
      harness = await createHarness()
      await (await harness.open()).close()
      await harness.execute("insert into kysely_migration (name, timestamp) values ('9999-future', '2099-01-01')")
      await expect(harness.open()).rejects.toThrow(NewerSchema)
      await expect(harness.open()).rejects.toThrow('9999-future')
    })

    test('closing finishes accepted writes and refuses new ones', async () => {
      harness = await createHarness()
      const store = await harness.open()
      const lease = await createConnected(store)
      const writes = Array.from({ length: 500 }, () => accept(store, lease.instanceId))
      const closed = store.close()
      const written = await Promise.all(writes)
      await closed
      await expect(store.ping()).rejects.toThrow(StoreUnavailable)
      await expect(store.instances.create(newInstance(), 0)).rejects.toThrow(StoreUnavailable)
      await expect(store.instances.find(lease.instanceId)).rejects.toThrow(StoreUnavailable)
      await expect(store.admission.admit('00'.repeat(32))).rejects.toThrow(StoreUnavailable)
      await store.close()
      const again = await harness.open()
      expect(await again.messages.listQueued(lease.instanceId, 1_000)).toHaveLength(written.length)
    })

    test('a failing unit rejects alone, and the others of its batch are committed', async () => {
      harness = await createHarness()
      const store = await harness.open()
      const { instanceId } = await createConnected(store)
      const taken = await accept(store, instanceId)
      const outcomes = await Promise.allSettled([
        accept(store, instanceId),
        accept(store, instanceId, { id: taken.id }),
        accept(store, instanceId),
        store.instances.create(newInstance({ id: instanceId }), 0),
        accept(store, instanceId),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'rejected',
        'fulfilled',
      ])
      expect(await store.messages.listQueued(instanceId, 10)).toHaveLength(4)
    })

    test('writes above the limit of the queue are refused immediately', async () => {
      harness = await createHarness()
      const store = await harness.open()
      const lease = await createConnected(store)
      const writes = Array.from({ length: 12_000 }, () => store.connections.record(lease, {}, 0))
      const renewal = store.leases.renew(lease.owner)
      const outcomes = await Promise.allSettled(writes)
      const refused = outcomes.filter(outcome => outcome.status === 'rejected')
      expect(refused.length).toBeGreaterThan(0)
      expect(refused.every(({ reason }) => reason instanceof StoreUnavailable)).toBe(true)
      expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(10_000)
      expect(await renewal).toEqual([lease])
    })
  })
}
