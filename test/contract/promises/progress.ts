import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type MessageProgress, type MessageState, messageFailure, movesTo } from '../../../src/domain/message.ts'
import {
  accept,
  acceptPrepared,
  bodyOf,
  createConnected,
  listReady,
  newMessage,
  PREPARED,
  watchHints,
  withStore,
} from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const REFUSED = messageFailure('rejected_by_whatsapp', 421)

export function progressContract(createHarness: CreateHarness): void {
  describe('progress', () => {
    const context = withStore(createHarness)

    async function kindsOf(instanceId: string, id: string): Promise<string[]> {
      return (await context.store.messages.listEvents(instanceId, id)).map(({ kind }) => kind)
    }

    test('an acknowledgement makes a message sent and records its event and delivery', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await acceptPrepared(store, lease)
      const hints = watchHints(store, lease.instanceId)
      expect(await store.messages.recordProgress(lease, message.whatsappId, 'sent', 5_000)).toBe('recorded')
      expect(hints).toEqual(['deliveries'])
      expect(await store.messages.find(lease.instanceId, message.id)).toMatchObject({ state: 'sent', sentAt: 5_000 })
      expect(await store.messages.listQueued(lease.instanceId, 10)).toEqual([])
      const [delivery] = await listReady(store, lease.instanceId)
      expect(delivery).toMatchObject({ kind: 'message.sent', attemptNumber: 1 })
      expect(bodyOf(delivery!)).toEqual({
        event: 'message.sent',
        instanceId: lease.instanceId,
        timestamp: '1970-01-01T00:00:05.000Z',
        data: { id: message.id, to: message.to, status: 'sent' },
      })
    })

    test('a receipt that skips a state records the skipped state first', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await acceptPrepared(store, lease)
      expect(await store.messages.recordProgress(lease, message.whatsappId, 'read', 9_000)).toBe('recorded')
      expect(await store.messages.find(lease.instanceId, message.id)).toMatchObject({
        state: 'read',
        sentAt: 9_000,
        deliveredAt: 9_000,
        readAt: 9_000,
      })
      expect(await kindsOf(lease.instanceId, message.id)).toEqual(['message.sent', 'message.delivered', 'message.read'])
    })

    test('a late or repeated receipt changes nothing', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, message.whatsappId, 'read', 9_000)
      const before = await store.messages.find(lease.instanceId, message.id)
      for (const late of ['sent', 'delivered', 'read'] as const) {
        expect(await store.messages.recordProgress(lease, message.whatsappId, late, 10_000)).toBe('unchanged')
      }
      expect(await store.messages.recordFailure(lease, message, REFUSED, 10_000)).toBe('unchanged')
      expect(await store.messages.find(lease.instanceId, message.id)).toEqual(before)
      expect(await kindsOf(lease.instanceId, message.id)).toHaveLength(3)
    })

    test('a message fails from queued and from sent, and nothing leaves failed', async () => {
      const { store } = context
      const lease = await createConnected(store)
      for (const start of ['queued', 'sent'] as const) {
        const message = await acceptPrepared(store, lease)
        if (start === 'sent') await store.messages.recordProgress(lease, message.whatsappId, 'sent', 1_000)
        expect(await store.messages.recordFailure(lease, message, REFUSED, 2_000)).toBe('recorded')
        expect(await store.messages.find(lease.instanceId, message.id)).toMatchObject({
          state: 'failed',
          failedAt: 2_000,
          failure: REFUSED,
        })
        expect(await store.messages.recordFailure(lease, message, REFUSED, 3_000)).toBe('unchanged')
        expect(await store.messages.recordProgress(lease, message.whatsappId, 'read', 3_000)).toBe('unchanged')
        expect((await kindsOf(lease.instanceId, message.id)).at(-1)).toBe('message.failed')
      }
      const failed = (await listReady(store, lease.instanceId)).find(({ kind }) => kind === 'message.failed')
      expect(bodyOf(failed!).data).toMatchObject({ status: 'failed', error: REFUSED })
    })

    test('a message that WhatsApp has acknowledged never fails because of its age, not even if it was read as queued before', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, message.whatsappId, 'sent', 1_000)
      for (const code of ['expired', 'unconfirmed'] as const) {
        expect(await store.messages.recordFailure(lease, message, messageFailure(code), 2_000)).toBe('unchanged')
      }
      expect(await store.messages.find(lease.instanceId, message.id)).toMatchObject({ state: 'sent', failure: null })
      expect(await kindsOf(lease.instanceId, message.id)).toEqual(['message.sent'])
    })

    test('an expired message that may have been written fails as unconfirmed, even if its reader saw it unprepared', async () => {
      const { store } = context
      const lease = await createConnected(store)
      for (const [message, code] of [
        [await acceptPrepared(store, lease), 'unconfirmed'],
        [await accept(store, lease.instanceId), 'expired'],
      ] as const) {
        expect(await store.messages.recordFailure(lease, message, messageFailure('expired'), 2_000)).toBe('recorded')
        const found = await store.messages.find(lease.instanceId, message.id)
        expect(found).toMatchObject({ state: 'failed', failure: messageFailure(code) })
      }
    })

    test('finds no message of another instance, and none that was never accepted', async () => {
      const { store } = context
      const [one, other] = [await createConnected(store), await createConnected(store)]
      const message = await accept(store, one.instanceId)
      expect(await store.messages.recordProgress(other, message.whatsappId, 'sent', 0)).toBe('unknown_message')
      expect(await store.messages.recordFailure(one, { whatsappId: 'ABSENT' }, REFUSED, 0)).toBe('unknown_message')
      expect(await store.messages.recordProgress(one, 'with a \0 in it', 'sent', 0)).toBe('unknown_message')
    })

    test('an unprepared message is found by its own ID, and not by its WhatsApp ID', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await accept(store, lease.instanceId)
      const { whatsappId } = message
      expect(await store.messages.recordProgress(lease, whatsappId, 'sent', 0)).toBe('unknown_message')
      expect(await store.messages.recordFailure(lease, { whatsappId }, REFUSED, 0)).toBe('unknown_message')
      expect(await store.messages.recordFailure(lease, message, REFUSED, 0)).toBe('recorded')
      expect(await kindsOf(lease.instanceId, message.id)).toEqual(['message.failed'])
    })

    test('concurrent reports on two messages are matched separately, by either ID', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const [sent, failed] = [await acceptPrepared(store, lease), await accept(store, lease.instanceId)]
      expect(
        await Promise.all([
          store.messages.recordProgress(lease, sent.whatsappId, 'sent', 0),
          store.messages.recordFailure(lease, failed, REFUSED, 0),
        ]),
      ).toEqual(['recorded', 'recorded'])
      expect(await kindsOf(lease.instanceId, sent.id)).toEqual(['message.sent'])
      expect(await kindsOf(lease.instanceId, failed.id)).toEqual(['message.failed'])
    })

    test('an event is never dated before the previous event of its message', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, message.whatsappId, 'sent', 10_000)
      await store.messages.recordProgress(lease, message.whatsappId, 'delivered', 4_000)
      await store.messages.recordProgress(lease, message.whatsappId, 'read', 12_000)
      const events = await store.messages.listEvents(lease.instanceId, message.id)
      expect(events.map(({ timestamp }) => timestamp)).toEqual([10_000, 10_000, 12_000])
      expect(await store.messages.find(lease.instanceId, message.id)).toMatchObject({ deliveredAt: 10_000 })
    })

    test('only the address that a message was prepared for can report its progress', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await accept(store, lease.instanceId)
      const prepared = { address: '551199990000@s.whatsapp.net', content: Buffer.from([1]) }
      await store.messages.recordPrepared(lease, message.id, prepared)
      const report = (from: readonly string[]) =>
        store.messages.recordReceipt(lease, message.whatsappId, 'read', 1_000, from)
      expect(await report([])).toEqual({ outcome: 'foreign', messageId: message.id })
      expect(await report(['551199990001@s.whatsapp.net'])).toEqual({ outcome: 'foreign', messageId: message.id })
      expect((await store.messages.find(lease.instanceId, message.id))?.state).toBe('queued')
      expect(await report(['99@lid', prepared.address])).toEqual({ outcome: 'recorded', messageId: message.id })
      expect((await store.messages.find(lease.instanceId, message.id))?.state).toBe('read')
    })

    test('the first preparation determines address and content', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = await accept(store, lease.instanceId)
      const { instanceId } = lease
      expect(await store.messages.findSent(instanceId, message.whatsappId)).toBeNull()
      const first = { address: '551199990000@s.whatsapp.net', content: Buffer.from([1, 2, 0, 255]) }
      const second = { address: 'another@s.whatsapp.net', content: Buffer.from([9]) }
      const [one, two] = await Promise.all([
        store.messages.recordPrepared(lease, message.id, first),
        store.messages.recordPrepared(lease, message.id, second),
      ])
      expect(one).toEqual(first)
      expect(two).toEqual(first)
      expect((await store.messages.listQueued(instanceId, 1))[0]!.prepared).toEqual(first)
      expect(await store.messages.findSent(instanceId, message.whatsappId)).toEqual(first)
      expect(await store.messages.findSent(instanceId, 'ABSENT')).toBeNull()
      await expect(store.messages.recordPrepared(lease, 'msg_absent', first)).rejects.toThrow('msg_absent')
    })

    test('the queue fails oldest first up to a limit; sent messages stay, prepared ones fail as unconfirmed', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const messages = [await acceptPrepared(store, lease), await acceptPrepared(store, lease)]
      for (let count = 2; count < 5; count += 1) messages.push(await accept(store, instanceId))
      await store.messages.recordProgress(lease, messages[0]!.whatsappId, 'sent', 1)
      const hints = watchHints(store, instanceId)
      const failure = messageFailure('instance_logged_out')
      expect(await store.messages.recordQueueFailed(lease, failure, 2, 3)).toBe(3)
      expect(hints).toEqual(['deliveries'])
      expect((await store.messages.listQueued(instanceId, 10)).map(({ id }) => id)).toEqual([messages[4]!.id])
      expect(await store.messages.recordQueueFailed(lease, failure, 3, 3)).toBe(1)
      expect(await store.messages.recordQueueFailed(lease, failure, 4, 3)).toBe(0)
      expect(await store.messages.find(instanceId, messages[0]!.id)).toMatchObject({ state: 'sent' })
      const written = { state: 'failed', failure: messageFailure('unconfirmed') }
      expect(await store.messages.find(instanceId, messages[1]!.id)).toMatchObject(written)
      expect(await store.messages.find(instanceId, messages[2]!.id)).toMatchObject({ state: 'failed', failure })
      for (const { id } of messages.slice(1)) expect(await kindsOf(instanceId, id)).toEqual(['message.failed'])
    })

    test('receipts in any order and number give monotonic states and exactly one event per state', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const news = fc.constantFrom<MessageProgress | 'failed'>('sent', 'delivered', 'read', 'failed')
      const property = fc.asyncProperty(fc.array(fc.array(news, { maxLength: 4 }), { maxLength: 4 }), async bursts => {
        const message = newMessage(lease.instanceId)
        await store.messages.accept(message, 0)
        await store.messages.recordPrepared(lease, message.id, PREPARED)
        let state: MessageState = 'queued'
        const expected: string[] = []
        for (const burst of bursts) {
          const outcomes = await Promise.all(
            burst.map((reached, index) =>
              reached === 'failed'
                ? store.messages.recordFailure(lease, message, REFUSED, index)
                : store.messages.recordProgress(lease, message.whatsappId, reached, index),
            ),
          )
          for (const [index, reached] of burst.entries()) {
            const moves: MessageState[] = reached === 'failed' ? failureFrom(state) : [...movesTo(state, reached)]
            expect(outcomes[index]).toBe(moves.length > 0 ? 'recorded' : 'unchanged')
            for (const move of moves) expected.push(`message.${move}`)
            state = moves.at(-1) ?? state
          }
        }
        expect((await store.messages.find(lease.instanceId, message.id))!.state).toBe(state)
        const events = await store.messages.listEvents(lease.instanceId, message.id)
        expect(events.map(({ kind }) => kind)).toEqual(expected)
        const times = events.map(({ timestamp }) => timestamp)
        expect(times).toEqual([...times].sort((a, b) => a - b))
        const states = events.map(({ delivery }) => delivery?.state)
        expect(states).toEqual(expected.map((_, index) => (index === 0 ? 'pending' : 'blocked')))
      })
      await fc.assert(property, { numRuns: 60 })
    })
  })
}

function failureFrom(state: MessageState): MessageState[] {
  return state === 'queued' || state === 'sent' ? ['failed'] : []
}
