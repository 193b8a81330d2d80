import { describe, expect, test } from 'vitest'
import { newCommandId } from '../../../../src/domain/ids.ts'
import { accept, createConnected, incoming, newMessage, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

export function scheduledContract(createHarness: CreateHarness): void {
  describe('scheduled messages and references', () => {
    const context = withStore(createHarness)

    test('take their places in the order of their moments, each before its commands, whatever the clocks say', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const later = newMessage(instanceId, { notBefore: 6_000 })
      const target = newMessage(instanceId, { notBefore: 5_000 })
      const other = newMessage(instanceId, { notBefore: 5_000 })
      for (const [message, now] of [
        [later, 1_000],
        [target, 3_000],
        [other, 3_001],
      ] as const)
        expect(await store.messages.accept(message, now)).toMatchObject({ kind: 'accepted' })
      const edit = newMessage(instanceId, {
        id: newCommandId(2_000),
        extras: { command: { kind: 'edit', text: 'New', targetId: target.id } },
      })
      expect(await store.messages.accept(edit, 2_000)).toMatchObject({ kind: 'accepted' })
      const plain = await accept(store, instanceId)
      expect((await store.statistics.totals()).queued).toBe(1)
      expect(await store.messages.releaseDue(lease, 5_000)).toBe(6_000)
      expect(await store.messages.releaseDue(lease, 6_000)).toBeNull()
      const queued = await store.messages.listQueued(instanceId, 10)
      expect(queued.map(({ id }) => id)).toEqual([plain, target, other, edit, later].map(({ id }) => id))
      expect(await accept(store, instanceId)).toMatchObject({ id: (await last(instanceId)).id })
    })

    async function last(instanceId: string) {
      return (await context.store.messages.listQueued(instanceId, 10)).at(-1)!
    }

    test("a quote by WhatsApp's ID finds the message of its chat, though another chat has the same ID", async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const chats = ['5511988880001', '5511988880002', '5511988880003']
      for (const from of chats) await store.events.storeIncoming(lease, incoming({ id: 'SAME', from }), 1)
      const answers = chats.map(to => newMessage(instanceId, { to, extras: { quote: 'SAME' } }))
      const stranger = newMessage(instanceId, { to: '5511988880004', extras: { quote: 'SAME' } })
      const outcomes = await Promise.all([...answers, stranger].map(message => store.messages.accept(message, 1)))
      expect(outcomes.map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'accepted', 'refused'])
      for (const { id, to } of answers) {
        const quote = (await store.messages.find(instanceId, id))?.extras?.quote
        expect(quote).toMatchObject({ whatsappId: 'SAME', author: `${to}@s.whatsapp.net` })
        expect((await store.messages.findIncoming(instanceId, quote!.messageId))?.chat).toBe(to)
      }
    })
  })
}
