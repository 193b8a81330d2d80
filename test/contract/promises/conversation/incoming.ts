import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MAX_EVENT_TEXT_UNITS } from '../../../../src/domain/events/event.ts'
import { newEventId } from '../../../../src/domain/ids.ts'
import type { IncomingMessage } from '../../../../src/domain/incoming-message.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { acceptPrepared, bodyOf, createConnected, deliverAll, incoming, listReady } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'

const NUMBER = '5511988880000'
const LID_DIGITS = '990000007654321'
const LID = `${LID_DIGITS}@lid`
const GROUP = '120363000000000777@g.us'
const BIG = 1_000_000
const UNCHANGED = { editedAt: null, deletedAt: null }

/** The names of one sender. */
const NAMES = {
  number: { from: NUMBER, chat: NUMBER, lid: null },
  both: { from: NUMBER, chat: NUMBER, lid: LID },
  lid: { from: LID_DIGITS, addressing: 'lid', chat: LID, lid: LID },
} as const satisfies Record<string, Partial<IncomingMessage>>

export function incomingContract(createHarness: CreateHarness): void {
  describe('an incoming message', () => {
    let harness: StoreHarness
    let store: Store
    let lease: Lease

    beforeEach(async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
    })
    afterEach(() => harness.dispose())

    function record(changes: Partial<IncomingMessage>, now = 0) {
      return store.events.storeIncoming(lease, incoming({ id: 'A', ...changes }), now)
    }

    async function count(table: string): Promise<number> {
      return Number((await harness.execute(`select count(*) as count from ${table}`))[0]!['count'])
    }

    /** Stores an event without a message row, as versions before migration 0012 did. */
    async function recordInOldForm({ id = 'A', from = NUMBER, group, text = 'Hi' }: Partial<IncomingMessage>) {
      const { instanceId } = lease
      const digest = createHash('sha256')
        .update(`received:${group ?? from}:${from}:${id}`)
        .digest('hex')
      const blob = harness.kind === 'sqlite' ? `x'${digest}'` : `'\\x${digest}'::bytea`
      const data = { id, from, type: 'text', text, ...(group && { group }) }
      const body = JSON.stringify({ event: 'message.received', instanceId, timestamp: '', data })
      await harness.execute(`insert into events
        (instance_id, id, kind, timestamp, created_at, message_id, incoming_digest, seq, body)
        select '${instanceId}', '${newEventId(5)}', 'message.received', 5, 5, null, ${blob}, coalesce(max(seq), 0) + 1, '${body}'
        from events where instance_id = '${instanceId}'`)
    }

    test.each([
      ['known by LID', 'lid', 'by both names', 'both'],
      ['known by both names', 'both', 'by LID', 'lid'],
      ['known by both names', 'both', 'by number', 'number'],
      ['known by number', 'number', 'by both names', 'both'],
    ] as const)('from a sender %s is a duplicate %s → %s', async (_, first, __, second) => {
      for (const where of [{}, { group: GROUP, chat: GROUP }]) {
        const id = JSON.stringify(where)
        expect(await record({ id, ...NAMES[first], ...where })).toBe('recorded')
        expect(await record({ id, ...NAMES[second], ...where })).toBe('duplicate')
        expect(await record({ id: `${id}!`, ...NAMES[second], ...where })).toBe('recorded')
      }
      const together = await Promise.all([record({ id: 'B', ...NAMES[second] }), record({ id: 'B', ...NAMES[first] })])
      expect(together.sort()).toEqual(['duplicate', 'recorded'])
      expect([await count('events'), await count('incoming_messages')]).toEqual([5, 5])
    })

    test.each(['number', 'lid'] as const)(
      'stored before messages had rows, by %s, is a duplicate under every name known now',
      async name => {
        const { from } = NAMES[name]
        await recordInOldForm({ from })
        await recordInOldForm({ id: 'G', from, group: GROUP })
        for (const now of [NAMES[name], NAMES.both]) {
          expect(await record(now)).toBe('duplicate')
          expect(await record({ id: 'G', ...now, group: GROUP, chat: GROUP })).toBe('duplicate')
        }
        expect(await count('incoming_messages')).toBe(0)
      },
    )

    test('is stored completely, whatever it contains, under the ID in its event', async () => {
      const message = incoming({
        ...NAMES.both,
        id: `id with \0 ${'y'.repeat(9_000)}`,
        text: `\0 \ud800 ${'x'.repeat(BIG)}`,
        name: '\0',
        username: 'a\ud800',
        group: GROUP,
        chat: GROUP,
        sentAt: 2_000,
      })
      expect(await store.events.storeIncoming(lease, message, 9_000)).toBe('recorded')
      const [delivery] = await listReady(store, lease.instanceId)
      const { data } = bodyOf(delivery!)
      expect(data['text'] === message.text!.slice(0, MAX_EVENT_TEXT_UNITS)).toBe(true)
      expect(data['truncated']).toBe(true)
      const messageId = String(data['messageId'])
      const found = await store.messages.findIncoming(lease.instanceId, messageId)
      expect(found?.text === message.text).toBe(true)
      expect({ ...found, text: '' }).toEqual({ ...message, ...UNCHANGED, text: '', messageId, createdAt: 9_000 })
      expect(await store.messages.find(lease.instanceId, messageId)).toBeNull()
      const event = await store.events.find(lease.instanceId, delivery!.eventId)
      expect(event).toMatchObject({ messageId, with: GROUP })
    })

    test('without text, group or name is found unchanged, and only by its own instance', async () => {
      const { text: _, ...message } = incoming({ ...NAMES.lid, type: 'image' })
      await store.events.storeIncoming(lease, message, 9)
      const [event] = (await store.events.list(lease.instanceId, { limit: 1 })).data
      const messageId = event!.messageId!
      expect(await store.messages.findIncoming(lease.instanceId, messageId)).toEqual({
        ...message,
        ...UNCHANGED,
        messageId,
        createdAt: 9,
      })
      const other = await createConnected(store)
      expect(await store.messages.findIncoming(other.instanceId, messageId)).toBeNull()
      expect(await store.messages.findIncoming(lease.instanceId, 'msg_absent')).toBeNull()
    })

    test('appears with its sender in the list of events, also in the old form unless its text is very long', async () => {
      await recordInOldForm({ id: '1' })
      await recordInOldForm({ id: '2', group: GROUP })
      await recordInOldForm({ id: '3', text: 'x'.repeat(BIG) })
      await record({ id: '4', ...NAMES.both }, 11)
      await record({ id: '5', ...NAMES.lid }, 12)
      await record({ id: '6', ...NAMES.lid, group: GROUP, chat: GROUP, text: 'x'.repeat(BIG) }, 13)
      const message = await acceptPrepared(store, lease, { to: '5511999990000' })
      await store.messages.recordProgress(lease, message.whatsappId, 'sent', 20)
      const { data } = await store.events.list(lease.instanceId, { limit: 10 })
      const newestFirst = ['5511999990000', GROUP, LID_DIGITS, NUMBER]
      expect(data.slice(0, 4).map(event => event.with)).toEqual(newestFirst)
      expect(
        data
          .slice(4)
          .map(event => event.with)
          .sort(),
      ).toEqual(['', GROUP, NUMBER].sort())
      expect(data.every(event => !('body' in event))).toBe(true)
    })

    test('is erased with its event when it is old, but not while a delivery is pending', async () => {
      await record({ id: '1', ...NAMES.both }, 1_000)
      await record({ id: '2', ...NAMES.both }, 3_000)
      expect(await store.retention.step(2_000, Date.now())).toBe(0)
      await deliverAll(store, lease)
      expect(await store.retention.step(2_000, Date.now())).toBe(4)
      expect([await count('incoming_messages'), await count('events')]).toEqual([1, 1])
      expect(await store.retention.step(2_000, Date.now())).toBe(0)
    })

    test('is erased with its instance, even by a node that does not know the table', async () => {
      const { instanceId } = lease
      await record({ id: '1' })
      await deliverAll(store, lease)
      await store.instances.delete(instanceId, 1)
      const { epoch } = lease
      expect(await store.instances.erase({ ...lease, epoch: epoch + 1 }).catch(error => error.name)).toBe('LeaseLost')
      const [again] = await store.leases.acquire(lease.owner, 10)
      expect(await store.instances.erase(again!)).toBe(true)
      expect(await count('incoming_messages')).toBe(0)

      lease = await createConnected(store)
      await record({ id: '2' })
      await harness.execute(`delete from instances where id = '${lease.instanceId}'`)
      expect(await count('incoming_messages')).toBe(0)
    })
  })
}
