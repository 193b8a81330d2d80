import { describe, expect, test } from 'vitest'
import type { HeardContact } from '../../../../src/domain/recipients/contact.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { createConnected, incoming, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const ANA = '5511988880000'
const ANA_LID = '990000007654321@lid'
const MANY = 10_000

function heard(changes: Partial<HeardContact> = {}): HeardContact {
  return { chat: ANA, lid: null, name: null, pushName: null, username: null, lastMessageAt: null, ...changes }
}

export function directoryContactsContract(createHarness: CreateHarness): void {
  describe('the contacts of the directory', () => {
    const context = withStore(createHarness)

    async function contacts(store: Store, { instanceId }: Lease, search?: string) {
      return (await store.directory.listContacts(instanceId, { limit: 50 }, search)).data
    }

    test('have the names of the address book and of their messages, and are listed by name', async () => {
      const { store } = context
      const lease = await createConnected(store)
      await store.directory.recordContacts(lease, [
        heard({ name: 'Érica Saved', pushName: 'Erica' }),
        heard({ chat: '5511988880001' }),
        heard({ chat: '5511988880002', pushName: 'bea', username: 'bea.moda' }),
      ])
      await store.events.storeIncoming(lease, incoming({ from: ANA, name: 'Erica nova' }), 5_000)
      expect(await contacts(store, lease)).toMatchObject([
        { chat: '5511988880002', name: null, pushName: 'bea', username: 'bea.moda', lastMessageAt: null },
        { chat: ANA, phone: ANA, name: 'Érica Saved', pushName: 'Erica nova', lastMessageAt: 5_000 },
        { chat: '5511988880001', name: null, pushName: null },
      ])
      const found = async (search: string) => (await contacts(store, lease, search)).map(({ chat }) => chat)
      expect(await found('ERICA S')).toEqual([ANA])
      expect(await found('erica n')).toEqual([ANA])
      expect(await found('a.MODA')).toEqual(['5511988880002'])
      expect(await found('+55 11 98888-0001')).toEqual(['5511988880001'])
      expect(await found('nobody')).toEqual([])
    })

    test('are no reason to write to them during a restriction, until they have written', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const isContact = () => store.numbers.isContact(lease.instanceId, [ANA])
      await store.directory.recordContacts(lease, [heard({ name: 'Ana', lastMessageAt: 9_000 })])
      expect(await isContact()).toBe(false)
      await store.events.storeIncoming(lease, incoming({ from: ANA, group: '1@g.us', chat: '1@g.us' }), 1_000)
      expect(await isContact()).toBe(false)
      await store.events.storeIncoming(lease, incoming({ id: 'B', from: ANA }), 2_000)
      expect(await isContact()).toBe(true)
      await store.directory.recordContacts(lease, [heard({ name: 'Ana' })])
      expect(await isContact()).toBe(true)
    })

    test('are one person under the number and the LID, whichever is known first', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const byLid = { chat: ANA_LID, lid: ANA_LID }
      await store.directory.recordContacts(lease, [heard({ ...byLid, name: 'Ana' })])
      expect(await contacts(store, lease)).toMatchObject([{ chat: ANA_LID, phone: null, lid: ANA_LID, name: 'Ana' }])
      await store.directory.recordContacts(lease, [heard({ lid: ANA_LID, pushName: 'aninha' })])
      const whole = { chat: ANA, phone: ANA, lid: ANA_LID, name: 'Ana', pushName: 'aninha' }
      expect(await contacts(store, lease)).toMatchObject([whole])
      await store.directory.recordContacts(lease, [heard({ ...byLid, username: 'ana' })])
      expect(await contacts(store, lease)).toMatchObject([{ ...whole, username: 'ana' }])
    })

    test('that come from the history are listed as chats; groups are not contacts', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const group = { chat: '120363000000000777@g.us', lastMessageAt: 8_000 }
      await store.directory.recordContacts(lease, [heard({ lastMessageAt: 9_000 }), heard(group)])
      const { data } = await store.conversations.listChats(lease.instanceId, { limit: 10 })
      expect(data.map(({ chat, lastMessageAt }) => [chat, lastMessageAt])).toEqual([
        [ANA, 9_000],
        [group.chat, 8_000],
      ])
      expect((await contacts(store, lease)).map(({ chat }) => chat)).toEqual([ANA])
    })

    test('are erased when the account is unlinked', async () => {
      const { store } = context
      const lease = await createConnected(store)
      await store.directory.recordContacts(lease, [heard({ name: 'Ana' })])
      await store.directory.recordContactsFilled(lease, 1)
      await store.credentials.clear(lease)
      expect(await contacts(store, lease)).toEqual([])
      expect((await store.directory.findFilled(lease.instanceId)).contacts).toBe(false)
    })

    test(`are found among ${MANY.toLocaleString('en')} without delay, and listed page by page`, async () => {
      const { store } = context
      const lease = await createConnected(store)
      const many = Array.from({ length: MANY }, (_, index) => {
        return heard({ chat: `55119${10_000_000 + index}`, name: `Pessoa ${index % 100}`, pushName: `Ç ${index}` })
      })
      await store.directory.recordContacts(lease, many)
      const startedAt = performance.now()
      expect(await contacts(store, lease, 'c 9999')).toHaveLength(1)
      expect(await contacts(store, lease, 'no such name')).toEqual([])
      // Two searches take about 20 ms on a quiet machine.
      expect(performance.now() - startedAt).toBeLessThan(2_000)
      const first = await store.directory.listContacts(lease.instanceId, { limit: 200 })
      const second = await store.directory.listContacts(lease.instanceId, { limit: 200, cursor: first.nextCursor! })
      expect(new Set([...first.data, ...second.data].map(({ chat }) => chat)).size).toBe(400)
    })
  })
}
