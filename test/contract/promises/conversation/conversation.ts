import { describe, expect, test } from 'vitest'
import { newCommandId } from '../../../../src/domain/ids.ts'
import type { IncomingMessage } from '../../../../src/domain/incoming-message.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { accept, acceptPrepared, createConnected, incoming, PREPARED, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const ANA = '5511988880000'
const ANA_LID = '990000007654321@lid'
const BEA = '5511988880001'
const GROUP = '120363000000000777@g.us'

export function conversationContract(createHarness: CreateHarness): void {
  describe('a conversation', () => {
    const context = withStore(createHarness)

    async function received(store: Store, lease: Lease, message: IncomingMessage) {
      expect(await store.events.storeIncoming(lease, message, 5_000)).toBe('recorded')
      const { data } = await store.events.list(lease.instanceId, { limit: 1 })
      return (await store.messages.findIncoming(lease.instanceId, data[0]!.messageId!))!
    }

    test('a reference names the message of its chat, whoever else uses the same ID', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const address = `${ANA}@s.whatsapp.net`
      const own = await accept(store, lease.instanceId, { to: ANA, whatsappId: 'SAME' })
      await store.messages.recordPrepared(lease, own.id, { ...PREPARED, address })
      const ofBea = await received(store, lease, incoming({ id: 'SAME', from: BEA }))
      const ofGroup = await received(store, lease, incoming({ id: 'SAME', from: ANA, group: GROUP, chat: GROUP }))
      const ofAna = await received(store, lease, incoming({ id: 'OTHER', from: ANA, lid: ANA_LID }))
      const answer = async (whatsappId: string, changes: Partial<IncomingMessage>) => {
        const details = { quote: { whatsappId, from: null, text: null }, reaction: { whatsappId, emoji: '👍' } }
        const { details: stored } = await received(store, lease, incoming({ ...changes, details }))
        expect(stored?.reaction?.messageId).toBe(stored?.quote?.messageId)
        return stored?.quote?.messageId
      }
      expect(await answer('SAME', { from: ANA })).toBe(own.id)
      expect(await answer('SAME', { from: BEA })).toBe(ofBea.messageId)
      expect(await answer('SAME', { from: BEA, group: GROUP })).toBe(ofGroup.messageId)
      expect(await answer('SAME', { from: '5511988880002' })).toBeNull()
      expect(await answer('OTHER', { from: BEA, group: GROUP })).toBeNull()
      const byLid = { from: ANA_LID.slice(0, -4), addressing: 'lid', lid: ANA_LID } as const
      expect(await answer('OTHER', byLid)).toBe(ofAna.messageId)
    })

    test('a reference in a group names the message of the author whom it states, whoever else uses the same ID', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const inGroup = { group: GROUP, chat: GROUP }
      const own = await accept(store, lease.instanceId, { to: GROUP, whatsappId: 'SAME' })
      await store.messages.recordPrepared(lease, own.id, { ...PREPARED, address: GROUP })
      const ofAna = await received(store, lease, incoming({ id: 'SAME', from: ANA, lid: ANA_LID, ...inGroup }))
      const ofBea = await received(store, lease, incoming({ id: 'SAME', from: BEA, ...inGroup }))
      const only = await received(store, lease, incoming({ id: 'ONLY', from: ANA, ...inGroup }))
      const answer = async (whatsappId: string, author: IncomingMessage['referencedAuthor']) => {
        const details = { reaction: { whatsappId, emoji: '👍' } }
        const message = incoming({ from: BEA, ...inGroup, details, ...(author && { referencedAuthor: author }) })
        const stored = await received(store, lease, message)
        expect(stored).not.toHaveProperty('referencedAuthor')
        return stored.details?.reaction?.messageId
      }
      expect(await answer('SAME', 'own')).toBe(own.id)
      expect(await answer('SAME', undefined)).toBe(own.id)
      expect(await answer('SAME', [ANA_LID])).toBe(ofAna.messageId)
      expect(await answer('SAME', ['5511988880002', ANA_LID])).toBe(ofAna.messageId)
      expect(await answer('SAME', [BEA])).toBe(ofBea.messageId)
      expect(await answer('SAME', ['5511988880002'])).toBeNull()
      expect(await answer('ONLY', ['990000000000001@lid'])).toBe(only.messageId)
    })

    test('of edits that are done in one commit the last one counts, and none is a message of its chat', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const message = await acceptPrepared(store, lease)
      const now = Date.now()
      await store.messages.recordProgress(lease, message.whatsappId, 'sent', now)
      const edits = []
      for (const text of ['one', 'two', 'three']) {
        const command = { kind: 'edit' as const, text, targetId: message.id }
        const edit = await accept(store, instanceId, { id: newCommandId(now), extras: { command } })
        await store.messages.recordPrepared(lease, edit.id, PREPARED)
        edits.push(edit)
      }
      const done = edits.map(({ whatsappId }) =>
        store.messages.recordProgress(lease, whatsappId, 'sent', now + 120_000),
      )
      expect(await Promise.all(done)).toEqual(['recorded', 'recorded', 'recorded'])
      expect((await store.messages.find(instanceId, message.id))!.text).toBe('three')
      const { data } = await store.conversations.listChats(instanceId, { limit: 10 })
      expect(data.map(({ lastMessageAt }) => lastMessageAt)).toEqual([now])
    })

    test('a search of the chats finds each chat once, beyond many others of the same minute', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const CHATS = 1_200
      const receive = (number: number) =>
        store.events.storeIncoming(
          lease,
          incoming({ from: String(5_511_900_000_000 + number), name: number % 300 === 0 ? 'Ana' : 'Bea' }),
          number < CHATS / 2 ? 1_000_000 : 2_000_000,
        )
      await Promise.all(Array.from({ length: CHATS }, (_, number) => receive(number)))
      const found: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.conversations.listChats(
          lease.instanceId,
          { limit: 2, ...(cursor && { cursor }) },
          'ana',
        )
        found.push(...page.data.map(({ chat }) => chat))
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined)
      const numbers = [600, 900, 0, 300]
      expect(found).toEqual(numbers.map(number => String(5_511_900_000_000 + number)))
    })
  })
}
