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

    test('keep this order if more than one commit releases them', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const accepted = async (notBefore: number, count: number) => {
        const messages = Array.from({ length: count }, () => newMessage(instanceId, { notBefore }))
        for (const message of messages) expect((await store.messages.accept(message, 1_000)).kind).toBe('accepted')
        const command = { kind: 'edit', text: 'New', targetId: messages[0]!.id } as const
        const edits = Array.from({ length: count }, (_, index) =>
          newMessage(instanceId, { id: newCommandId(index), extras: { command } }),
        )
        for (const edit of edits) expect((await store.messages.accept(edit, 1_000)).kind).toBe('accepted')
        return [...messages, ...edits].map(({ id }) => id)
      }
      const later = await accepted(5_001, 3)
      const first = await accepted(4_999, 3)
      const campaign = await accepted(5_000, 101)
      const notDue = await accepted(6_000, 1)
      expect(await store.messages.releaseDue(lease, 5_001)).toBe(6_000)
      const queued = await store.messages.listQueued(instanceId, 1_000)
      expect(queued.map(({ id }) => id)).toEqual([...first, ...campaign, ...later])
      expect(await store.messages.releaseDue(lease, 6_000)).toBeNull()
      expect(await store.messages.listQueued(instanceId, 1_000)).toHaveLength(queued.length + notDue.length)
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
