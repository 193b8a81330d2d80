import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newInstanceId } from '../../../src/domain/ids.ts'
import type { Store } from '../../../src/store/store.ts'
import type { ImportedInstance } from '../../../src/store/transfers/transfers.ts'
import { newInstance, take, watchHints, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

let numbers = 0

export function imported(changes: Partial<ImportedInstance> = {}): ImportedInstance {
  const { id, name, tokenDigest, webhookSecret } = newInstance()
  const phone = `55119${String(++numbers).padStart(8, '0')}`
  const rows = [
    { type: 'creds', id: 'creds', value: randomBytes(900) },
    { type: 'pre-key', id: '1', value: randomBytes(100) },
  ]
  return { id, name, tokenDigest, webhookSecret, phone, webhookUrl: null, rows, ...changes }
}

async function bringIn(store: Store, changes: Partial<ImportedInstance> = {}): Promise<ImportedInstance> {
  const instance = imported(changes)
  expect(await store.transfers.import(instance, 5)).toEqual({ kind: 'imported', id: instance.id })
  return instance
}

export function transfersContract(createHarness: CreateHarness): void {
  describe('sessions that move', () => {
    const context = withStore(createHarness)

    test('an imported instance is stopped with its credentials, and its owner reads them', async () => {
      const { store } = context
      const hints = watchHints(store, 'inst_imported0000')
      const url = 'https://receiver.example/hook'
      const { id, phone, rows } = await bringIn(store, { id: 'inst_imported0000', webhookUrl: url })
      expect(hints).toContain('goal')
      expect(await store.instances.find(id)).toMatchObject({ state: 'stopped', kind: 'whatsapp', phone })
      expect(await store.connections.find(id)).toMatchObject({ cause: 'imported', goal: 'idle', goalVersion: 0 })
      expect((await store.instances.findWebhook(id))?.url).toBe(url)
      expect((await store.credentials.get(id, 'creds', ['creds'])).get('creds')).toEqual(rows[0]!.value)
      await take(store, id)
      expect(await store.connections.requestConnect(id, null)).toBe(true)
    })

    test('a number is imported once, until its instance is deleted', async () => {
      const { store } = context
      const first = await bringIn(store)
      const { phone, id, name } = first
      expect(await store.transfers.findLinked(phone)).toEqual({ id, name })
      expect(await store.transfers.import(imported({ phone }), 6)).toEqual({ kind: 'known', id, name })
      await store.instances.delete(id, 7)
      expect(await store.transfers.findLinked(phone)).toBeNull()
      await bringIn(store, { phone })
    })

    test('a key that cannot be stored leaves no instance behind', async () => {
      const { store } = context
      const twice = { type: 'pre-key', id: '1', value: randomBytes(10) }
      const instance = imported({ rows: [twice, twice] })
      await expect(store.transfers.import(instance, 5)).rejects.toThrow()
      expect(await store.instances.find(instance.id)).toBeNull()
      expect(await store.transfers.findLinked(instance.phone)).toBeNull()
    })

    test('an export stops the instance, returns its credentials, and lets it connect only after a confirmation', async () => {
      const { store } = context
      const { id, phone, rows } = await bringIn(store)
      expect(await store.transfers.export(id, 8)).toEqual({ kind: 'exported', phone, rows })
      expect(await store.transfers.export(id, 9)).toMatchObject({ kind: 'exported' })
      expect(await store.connections.find(id)).toMatchObject({ state: 'stopped', cause: 'exported', goal: 'idle' })
      expect(await store.connections.requestConnect(id, null)).toBe(false)
      expect((await store.connections.find(id))?.goal).toBe('idle')
      expect(await store.connections.requestConnect(id, null, true)).toBe(true)
      expect((await store.connections.find(id))?.goal).toBe('online')
    })

    test('an instance that a node runs is not exported, and a former owner writes nothing afterwards', async () => {
      const { store, harness } = context
      const { id } = await bringIn(store)
      const lease = await take(store, id)
      expect(await store.transfers.export(id, 8)).toEqual({ kind: 'running' })
      await harness.execute(`update leases set lease_until = 0 where instance_id = '${id}'`)
      expect(await store.transfers.export(id, 8)).toMatchObject({ kind: 'exported' })
      const change = { type: 'pre-key', id: '2', value: randomBytes(10) }
      await expect(store.credentials.set(lease, [change])).rejects.toMatchObject({ name: 'LeaseLost' })
    })

    test('a number whose logout was requested is not exported', async () => {
      const { store } = context
      const { id } = await bringIn(store)
      await store.connections.requestLogout(id)
      expect(await store.transfers.export(id, 8)).toEqual({ kind: 'not_linked' })
      await store.connections.requestConnect(id, null)
      expect(await store.transfers.export(id, 8)).toEqual({ kind: 'not_linked' })
    })

    test('an instance without a number, a sandbox and an unknown one have nothing to export', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const sandbox = await store.instances.create(newInstance({ kind: 'sandbox' }), 0)
      for (const one of [id, sandbox.id, newInstanceId()])
        expect(await store.transfers.export(one, 8)).toEqual({ kind: 'not_linked' })
    })
  })
}
