import { afterEach, describe, expect, test } from 'vitest'
import { newMessageId } from '../../../../src/domain/ids.ts'
import type { Store } from '../../../../src/store/store.ts'
import { accept, createConnected, deliverAll, incoming, newMessage, PREPARED } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'

const THEM = '5511987654321'
const OTHER_SPELLING = '551187654321'
const LID = '123456789012345@lid'
const OTHER = '5511911112222'
const GROUP = '120363041234567890@g.us'
const DAY_MS = 86_400_000

export function contactErasureContract(createHarness: CreateHarness): void {
  describe('erasing a contact', () => {
    let harness: StoreHarness
    let store: Store
    afterEach(() => harness.dispose())

    /** Everything that the database contains, as text. */
    async function everything(): Promise<string> {
      const parts: string[] = []
      for (const table of ['messages', 'incoming_messages', 'events', 'attempts', 'contacts', 'numbers', 'pace_uses'])
        parts.push(JSON.stringify(await harness.execute(`select * from ${table}`)))
      return parts.join('\n')
    }

    test('erases both directions, groups, events and the name, leaves others, and can be repeated', async () => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const then = now - 2 * DAY_MS
      for (const [to, text] of [
        [THEM, 'sent to them'],
        [OTHER, 'sent to another'],
      ] as const) {
        const message = newMessage(instanceId, { id: newMessageId(then), to, text })
        await store.messages.accept(message, then)
        const address = `${to}@s.whatsapp.net`
        await store.messages.recordPrepared(lease, message.id, { ...PREPARED, address })
        await store.messages.recordProgress(lease, message.whatsappId, 'read', then)
      }
      const theirs = incoming({ from: THEM, lid: LID, text: 'written by them', name: 'Their Name' })
      await store.events.storeIncoming(lease, theirs, then)
      await store.events.storeIncoming(
        lease,
        incoming({ from: THEM, lid: LID, group: GROUP, text: 'in a group' }),
        then,
      )
      await store.events.storeIncoming(lease, incoming({ from: OTHER, text: 'written by another' }), then)
      // Nothing is erased that is still being posted.
      expect(await store.retention.eraseContact(instanceId, THEM, now)).toEqual({
        messages: 0,
        events: 0,
        files: 0,
        kept: 3,
      })
      await deliverAll(store, lease)
      const young = await accept(store, instanceId, { to: THEM, text: 'sent just now' })
      await deliverAll(store, lease)
      const erased = await store.retention.eraseContact(instanceId, THEM, now)
      expect(erased).toEqual({ messages: 3, events: 5, files: 0, kept: 1 })
      expect(await everything()).not.toMatch(/sent to them|written by them|in a group/)
      expect(await everything()).toMatch(/sent just now/)

      // It is not recorded a second time.
      await store.events.storeIncoming(lease, theirs, now)
      await store.messages.recordPrepared(lease, young.id, { ...PREPARED, address: `${THEM}@s.whatsapp.net` })
      await store.messages.recordProgress(lease, young.whatsappId, 'read', now)
      await deliverAll(store, lease)
      const later = now + 2 * DAY_MS
      expect(await store.retention.eraseContact(instanceId, LID, later)).toMatchObject({ messages: 1, kept: 0 })
      const left = await everything()
      expect(left).not.toMatch(new RegExp(`${THEM}|${LID}|Their Name|sent just now`))
      expect(left).toMatch(/sent to another/)
      expect(left).toMatch(/written by another/)
      expect(await store.retention.eraseContact(instanceId, THEM, later)).toMatchObject({ messages: 0, kept: 0 })
    })

    test.each([THEM, OTHER_SPELLING, LID])('erases both spellings of a number, named as %s', async name => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const then = now - 2 * DAY_MS
      // WhatsApp knows their number without the ninth digit.
      for (const [to, whatsappNumber, text] of [
        [THEM, OTHER_SPELLING, 'sent to them'],
        [OTHER, OTHER, 'sent to another'],
      ] as const) {
        const message = newMessage(instanceId, { id: newMessageId(then), to, text })
        await store.messages.accept(message, then)
        const address = `${whatsappNumber}@s.whatsapp.net`
        await store.messages.recordPrepared(lease, message.id, { ...PREPARED, address })
        await store.messages.recordProgress(lease, message.whatsappId, 'read', then)
      }
      const theirs = incoming({ from: OTHER_SPELLING, lid: LID, text: 'written by them', name: 'Their Name' })
      await store.events.storeIncoming(lease, theirs, then)
      await store.events.storeIncoming(lease, incoming({ from: '551111112222', text: 'written by another' }), then)
      await deliverAll(store, lease)
      expect(await store.retention.eraseContact(instanceId, name, now)).toMatchObject({ messages: 2, kept: 0 })
      const left = await everything()
      expect(left).not.toMatch(new RegExp(`${THEM}|${OTHER_SPELLING}|${LID}|Their Name|sent to them|written by them`))
      // Two people whose numbers differ in the optional digit only.
      expect(await store.retention.eraseContact(instanceId, OTHER, now)).toMatchObject({ messages: 1, kept: 0 })
      expect(await everything()).toMatch(/written by another/)
    })
  })
}
