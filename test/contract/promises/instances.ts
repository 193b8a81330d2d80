import { describe, expect, test } from 'vitest'
import type { ConnectionState } from '../../../src/domain/connection/connection.ts'
import { DEFAULT_ENDPOINT } from '../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../src/domain/ids.ts'
import { InvalidCursor, LeaseLost } from '../../../src/store/errors.ts'
import {
  accept,
  attempt,
  createConnected,
  createOwned,
  deliverAll,
  findSecrets,
  newInstance,
  take,
  URL,
  watchHints,
  withStore,
} from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'
import { newKey } from './api-keys.ts'

const DAY_MS = 24 * 60 * 60_000

export function instancesContract(createHarness: CreateHarness): void {
  describe('instances', () => {
    const context = withStore(createHarness)

    test('finds what was created', async () => {
      const { store } = context
      const instance = newInstance({ name: 'Bakery', kind: 'sandbox', goal: 'online' })
      const created = await store.instances.create(instance, 1_234)
      expect(created).toMatchObject({
        id: instance.id,
        name: 'Bakery',
        kind: 'sandbox',
        state: 'unlinked',
        phone: null,
      })
      expect(await store.instances.find(instance.id)).toEqual(created)
      expect(created.createdAt).toBe(1_234)
      expect(await store.connections.find(instance.id)).toMatchObject({
        goal: 'online',
        kind: 'sandbox',
        deleted: false,
      })
      expect(await store.instances.find('inst_absent')).toBeNull()
    })

    test('there are hints for a new instance, name, URL and secret, and for a deletion', async () => {
      const { store } = context
      const instance = newInstance()
      const hints = watchHints(store, instance.id)
      await store.instances.create(instance, 0)
      expect(hints.splice(0)).toContain('goal')
      await store.instances.rename(instance.id, 'Other')
      expect(hints.splice(0)).toContain('connection')
      await store.instances.setWebhookUrl(instance.id, URL)
      expect(hints.splice(0)).toContain('webhook')
      await store.endpoints.replaceSecret(instance.id, DEFAULT_ENDPOINT, 'whsec_other', 0)
      expect(hints.splice(0)).toContain('webhook')
      await store.instances.delete(instance.id, 0)
      expect(hints.splice(0)).toContain('goal')
    })

    test('lists newest first in pages that stay stable while instances are created', async () => {
      const harness = await createHarness()
      const store = await harness.open()
      for (const name of ['a', 'b', 'c', 'd', 'e']) await store.instances.create(newInstance({ name }), 0)
      const first = await store.instances.list({ limit: 2 })
      expect(first.data.map(({ name }) => name)).toEqual(['e', 'd'])
      await store.instances.create(newInstance({ name: 'f' }), 0)
      const second = await store.instances.list({ limit: 2, cursor: first.nextCursor! })
      expect(second.data.map(({ name }) => name)).toEqual(['c', 'b'])
      const third = await store.instances.list({ limit: 2, cursor: second.nextCursor! })
      expect(third).toMatchObject({ data: [{ name: 'a' }], nextCursor: null })
      expect((await store.instances.list({ limit: 6 })).nextCursor).toBeNull()
      await harness.dispose()
    })

    test('searches by name, ID and number, literally', async () => {
      const { store } = context
      const lease = await createOwned(store, { name: '100% Pão_de' })
      await store.connections.record(lease, { phone: '5511977776666' }, 0)
      const search = async (text: string) =>
        (await store.instances.list({ limit: 200 }, { search: text })).data.map(({ id }) => id)
      expect(await search('0% p')).toEqual([lease.instanceId])
      expect(await search('o_d')).toEqual([lease.instanceId])
      expect(await search('1977776')).toEqual([lease.instanceId])
      expect(await search(lease.instanceId.slice(3))).toEqual([lease.instanceId])
      for (const text of ['pao', 'PÃO', 'p\u00e3o', 'Pao_D'])
        expect(await search(text), text).toEqual([lease.instanceId])
      for (const text of ['+55 11', '+55 (11) 97777-6666', '97777 66']) {
        expect(await search(text), text).toEqual([lease.instanceId])
      }
      expect(await search('0_% P')).toEqual([])
      expect(await search('a\0b')).toEqual([])
    })

    test('lists in the order of names, without regard to case and accents, in pages', async () => {
      const harness = await createHarness()
      const store = await harness.open()
      const names = ['Órgão', 'abacate', 'Zebra', 'ostra', 'Água', 'abacate']
      for (const name of names) await store.instances.create(newInstance({ name }), 0)
      const listed: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.instances.list({ limit: 2, cursor }, { sort: 'name' })
        listed.push(...page.data.map(({ name }) => name))
        cursor = page.nextCursor ?? undefined
      } while (cursor)
      expect(listed).toEqual(['abacate', 'abacate', 'Água', 'Órgão', 'ostra', 'Zebra'])
      for (const wrong of ['x', Buffer.from('0 a').toString('base64url'), Buffer.from('1').toString('base64url')]) {
        await expect(store.instances.list({ limit: 2, cursor: wrong }, { sort: 'name' })).rejects.toThrow(InvalidCursor)
      }
      await harness.dispose()
    })

    test('lists only instances whose present state is the requested one', async () => {
      const harness = await createHarness()
      const store = await harness.open()
      const connected = await createConnected(store)
      const away = await createConnected(store)
      await store.connections.record(away, { state: 'reconnecting', reason: 'Cut.', cause: 'cut' }, Date.now())
      const unlinked = await store.instances.create(newInstance(), 0)
      const ids = async (state: ConnectionState) =>
        (await store.instances.list({ limit: 9 }, { state })).data.map(({ id }) => id)
      expect(await ids('connected')).toEqual([connected.instanceId])
      expect(await ids('reconnecting')).toEqual([away.instanceId])
      expect(await ids('unlinked')).toEqual([unlinked.id])
      await harness.execute('update connections set last_connected_at = 1')
      expect(await ids('disconnected')).toEqual([away.instanceId])
      await harness.dispose()
    })

    test('renames', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      expect(await store.instances.rename(id, 'Renamed')).toMatchObject({ id, name: 'Renamed' })
      expect(await store.instances.find(id)).toMatchObject({ name: 'Renamed' })
      expect(await store.instances.rename('inst_absent', 'x')).toBeNull()
    })

    test('stores the webhook, whose URL can be set, changed and cleared', async () => {
      const { store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const secret = instance.webhookSecret
      expect(await store.instances.findWebhook(instance.id)).toEqual({ instanceId: instance.id, url: null, secret })
      expect(await store.instances.setWebhookUrl(instance.id, URL)).toEqual({
        instanceId: instance.id,
        url: URL,
        secret,
      })
      expect(await store.instances.findWebhook(instance.id)).toMatchObject({ url: URL })
      expect(await store.instances.setWebhookUrl(instance.id, null)).toMatchObject({ url: null })
      expect(await store.instances.setWebhookUrl('inst_absent', URL)).toBeNull()
      expect(await store.instances.findWebhook('inst_absent')).toBeNull()
    })

    test('a replaced secret also signs for 24 h', async () => {
      const { store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const former = instance.webhookSecret
      expect(await findSecrets(store, instance.id, 5)).toEqual({ current: former, previous: [] })
      expect(await store.endpoints.replaceSecret(instance.id, DEFAULT_ENDPOINT, 'whsec_2', 1_000)).toBe(true)
      expect(await store.instances.findWebhook(instance.id)).toMatchObject({ secret: 'whsec_2' })
      const at = (now: number) => findSecrets(store, instance.id, now)
      expect(await at(1_000 + DAY_MS - 1)).toEqual({ current: 'whsec_2', previous: [former] })
      expect(await at(1_000 + DAY_MS)).toEqual({ current: 'whsec_2', previous: [] })
      expect(await store.endpoints.replaceSecret('inst_absent', DEFAULT_ENDPOINT, 'whsec_2', 0)).toBe(false)
    })

    test('a secret that is replaced again within 24 h does not end the one before it earlier', async () => {
      const { store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const first = instance.webhookSecret
      const at = (now: number) => findSecrets(store, instance.id, now)
      await store.endpoints.replaceSecret(instance.id, DEFAULT_ENDPOINT, 'whsec_2', 1_000)
      await store.endpoints.replaceSecret(instance.id, DEFAULT_ENDPOINT, 'whsec_3', 2_000)
      expect(await at(1_000 + DAY_MS - 1)).toEqual({ current: 'whsec_3', previous: ['whsec_2', first] })
      expect(await at(1_000 + DAY_MS)).toEqual({ current: 'whsec_3', previous: ['whsec_2'] })
      expect(await at(2_000 + DAY_MS)).toEqual({ current: 'whsec_3', previous: [] })
      await store.endpoints.replaceSecret(instance.id, DEFAULT_ENDPOINT, 'whsec_4', 1_500 + DAY_MS)
      expect(await at(1_500 + DAY_MS)).toEqual({ current: 'whsec_4', previous: ['whsec_3', 'whsec_2'] })
      for (let n = 5; n < 20; n += 1) {
        await store.endpoints.replaceSecret(instance.id, DEFAULT_ENDPOINT, `whsec_${n}`, 1_600 + DAY_MS)
      }
      const previous = [18, 17, 16, 15, 14].map(n => `whsec_${n}`)
      expect(await at(1_600 + DAY_MS)).toEqual({ current: 'whsec_19', previous })
    })

    describe('a deletion', () => {
      test('hides the instance and erases its credentials', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const id = lease.instanceId
        await store.credentials.set(lease, [{ type: 'creds', id: 'main', value: Buffer.from('key') }])
        expect(await store.instances.delete(id, 5)).toBe(true)
        expect(await store.instances.delete(id, 6)).toBe(false)
        expect(await store.instances.find(id)).toBeNull()
        expect(await store.instances.findWebhook(id)).toBeNull()
        expect(await store.instances.rename(id, 'x')).toBeNull()
        expect(await store.instances.setWebhookUrl(id, URL)).toBeNull()
        expect(await store.connections.requestConnect(id, null)).toBe(false)
        expect(await store.connections.requestLogout(id)).toBe(false)
        expect((await store.instances.list({ limit: 200 })).data.some(instance => instance.id === id)).toBe(false)
        expect(await store.credentials.get(id, 'creds', ['main'])).toEqual(new Map())
        expect(await store.connections.find(id)).toMatchObject({ deleted: true })
      })

      test('refuses later writes of its connection', async () => {
        const { store } = context
        const lease = await createConnected(store)
        await store.instances.delete(lease.instanceId, 0)
        const value = Buffer.from('late')
        await expect(store.credentials.set(lease, [{ type: 'a', id: 'b', value }])).rejects.toThrow(LeaseLost)
        await expect(store.connections.record(lease, { state: 'connected' }, 0)).rejects.toThrow(LeaseLost)
        const next = await take(store, lease.instanceId)
        expect(next.epoch).toBeGreaterThan(lease.epoch)
      })

      test('erases every row once no message is queued and no delivery is pending', async () => {
        const { harness, store } = context
        const lease = await createConnected(store)
        const id = lease.instanceId
        await accept(store, id, { idempotency: { key: 'k', digest: Buffer.alloc(32) } })
        await store.numbers.record(lease, '5511999990000', null, 0)
        await store.sandbox.write(lease, [{ key: 'k', value: Buffer.from('v') }])
        await store.phoneOrders.leave(id, 'order', '{}')
        await store.apiKeys.create(newKey(id), 0)
        expect(await store.instances.erase(lease)).toBe(false)
        await store.instances.delete(id, 0)
        const closing = await take(store, id)
        expect(await store.instances.erase(closing)).toBe(false)
        const failure = { code: 'instance_deleted', message: 'Deleted.' } as const
        expect(await store.messages.recordQueueFailed(closing, failure, 1, 100)).toBe(1)
        expect(await store.instances.erase(closing)).toBe(false)
        expect(await findSecrets(store, id, 1)).not.toBeNull()
        expect(await deliverAll(store, closing)).toEqual(['message.failed'])
        expect(await store.instances.erase(closing)).toBe(true)
        expect(await rowsOf(harness, id)).toEqual([])
        expect(await store.connections.find(id)).toBeNull()
        await expect(store.instances.erase(closing)).rejects.toThrow(LeaseLost)
      })

      test('reports later events to the endpoints that the instance had, and to no others', async () => {
        const { store } = context
        const { instanceId } = await createConnected(store)
        const add = async (settings: { events?: string[]; active?: boolean }) => {
          const id = newEndpointId()
          const endpoint = { instanceId, id, secret: 'whsec_b3RoZXI=', url: URL, description: null }
          await store.endpoints.create({ ...endpoint, events: ['*'], active: true, ...settings }, 0)
          return id
        }
        const all = await add({})
        const paused = await add({ events: ['message.failed'], active: false })
        const reads = await add({ events: ['message.read'] })
        const gone = await add({})
        await store.endpoints.delete(instanceId, gone, 1)
        await accept(store, instanceId)
        await store.instances.delete(instanceId, 2)
        const closing = await take(store, instanceId)
        await store.retention.step(0, 0)
        expect(await store.endpoints.findPosting(instanceId, gone, 0)).toBeNull()
        expect(new Set(await store.endpoints.listPosting(instanceId))).toEqual(new Set([all, paused, reads]))
        const failure = { code: 'instance_deleted', message: 'Deleted.' } as const
        expect(await store.messages.recordQueueFailed(closing, failure, 3, 100)).toBe(1)
        const firsts = (id: string) => store.deliveries.listFirst(instanceId, 0, 100, id)
        expect(await firsts(reads)).toEqual([])
        for (const id of [DEFAULT_ENDPOINT, all, paused]) {
          expect(await store.endpoints.findPosting(instanceId, id, 0)).toMatchObject({ active: true })
          const [delivery] = await firsts(id)
          await store.deliveries.recordAttempt(closing, delivery!, attempt(delivery!), { kind: 'delivered' })
        }
        expect(await store.instances.erase(closing)).toBe(true)
        expect(await store.endpoints.findPosting(instanceId, all, 0)).toBeNull()
      })

      test('does not affect other instances', async () => {
        const { store } = context
        const kept = await createConnected(store)
        const message = await accept(store, kept.instanceId)
        const gone = await createConnected(store)
        await store.instances.delete(gone.instanceId, 0)
        expect(await store.instances.erase(await take(store, gone.instanceId))).toBe(true)
        expect(await store.messages.find(kept.instanceId, message.id)).not.toBeNull()
        await store.leases.renew(kept.owner)
      })
    })
  })
}

/** The tables with rows of the instance. */
async function rowsOf(harness: Awaited<ReturnType<CreateHarness>>, id: string): Promise<string[]> {
  const tables = ['connections', 'leases', 'messages', 'idempotency_keys', 'numbers', 'events', 'deliveries']
  tables.push('finished_deliveries', 'attempts', 'credentials', 'sandbox_records')
  const left: string[] = []
  for (const table of tables) {
    const rows = await harness.execute(`select 1 from ${table} where instance_id = '${id}'`)
    if (rows.length > 0) left.push(table)
  }
  if ((await harness.execute(`select 1 from instances where id = '${id}'`)).length > 0) left.push('instances')
  return left
}
