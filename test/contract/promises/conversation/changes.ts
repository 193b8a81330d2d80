import { describe, expect, test } from 'vitest'
import { newCommandId } from '../../../../src/domain/ids.ts'
import type { IncomingChange, IncomingMessage } from '../../../../src/domain/incoming-message.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import {
  acceptPrepared,
  attempt,
  bodyOf,
  createConnected,
  deliverAll,
  incoming,
  listReady,
  withStore,
} from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const NUMBER = '5511999990000'
const OTHER = '5511999990001'
const SELF = '5511900000000'
const LID = '990000007654321@lid'
const GROUP = '120363000000000777@g.us'
const AUTHOR = { from: NUMBER, lid: null }
const STRANGER = { from: '5511999990002', lid: null }
const HOUR_MS = 3_600_000

export function changesContract(createHarness: CreateHarness): void {
  describe('a message that is edited or deleted on WhatsApp', () => {
    const context = withStore(createHarness)

    /** An instance whose default endpoint receives every kind. */
    async function open(): Promise<Lease> {
      const lease = await createConnected(context.store)
      await context.store.endpoints.change(lease.instanceId, 'endpoint_default', { events: ['*'] })
      return lease
    }

    function change(changes: Partial<IncomingChange> = {}): IncomingChange {
      const { from = NUMBER, group } = changes
      const about = { id: 'E', from, chat: group ?? from, lid: null, username: null, sentAt: 5_000 }
      return { ...about, change: 'edit', target: 'A', ofOwn: false, text: 'new', ...changes }
    }

    const record = (lease: Lease, changes: Partial<IncomingChange> = {}) =>
      context.store.events.recordChange(lease, change(changes), 1)
    const receive = (lease: Lease, changes: Partial<IncomingMessage> = {}) =>
      context.store.events.storeIncoming(lease, incoming({ id: 'A', from: NUMBER, ...changes }), 0)
    const lines = async ({ instanceId }: Lease) =>
      (await context.store.conversations.listLines(instanceId, { limit: 10 })).data.map(({ message }) => message)

    test('has the new text, then none, and its events are posted one after the other', async () => {
      const lease = await open()
      await receive(lease)
      expect(await record(lease)).toBe('recorded')
      expect(await lines(lease)).toMatchObject([{ text: 'new', editedAt: 5_000, deletedAt: null }])
      expect(await record(lease, { id: 'D', change: 'delete', sentAt: 6_000 })).toBe('recorded')
      const [line] = await lines(lease)
      expect(line).toMatchObject({ deletedAt: 6_000 })
      expect(line).not.toHaveProperty('text')
      const [first, ...others] = await listReady(context.store, lease.instanceId)
      expect([first!.kind, others]).toEqual(['message.received', []])
      expect(await deliverAll(context.store, lease)).toEqual(['message.received', 'message.edited', 'message.deleted'])
    })

    test('reports the change while its first event is being posted, and afterwards', async () => {
      const lease = await open()
      await receive(lease)
      const [posting] = await listReady(context.store, lease.instanceId)
      await record(lease)
      await context.store.deliveries.recordAttempt(lease, posting!, attempt(posting!), { kind: 'delivered' })
      await record(lease, { id: 'E2' })
      expect(await deliverAll(context.store, lease)).toEqual(['message.edited', 'message.edited'])
    })

    test('while other messages wait, blocks nothing of theirs', async () => {
      const lease = await open()
      await receive(lease)
      await receive(lease, { id: 'B' })
      await record(lease)
      expect((await listReady(context.store, lease.instanceId)).map(({ kind }) => kind)).toEqual([
        'message.received',
        'message.received',
      ])
    })

    test.each([
      ['by number', {}, { lid: LID }],
      ['by LID, then by both names', { from: LID.slice(0, -4), addressing: 'lid', chat: LID, lid: LID }, { lid: LID }],
      ['by both names', { lid: LID }, { lid: LID }],
      ['by number with a LID that was looked up, then by number', { lid: LID, isLidLookedUp: true }, {}],
      ['by both names, then by LID', { lid: LID }, { from: LID.slice(0, -4), addressing: 'lid', chat: LID, lid: LID }],
    ] as const)('delivered twice %s, reports one event', async (_, first, second) => {
      const lease = await open()
      await receive(lease, { lid: LID })
      expect(await record(lease, first)).toBe('recorded')
      expect(await context.store.events.isRecorded(lease.instanceId, change(second))).toBe(true)
      expect(await record(lease, second)).toBe('duplicate')
    })

    test.each([
      ['an edit by another member', {}, 'ignored'],
      ['a deletion by another member', { change: 'delete' }, 'ignored'],
      ['an edit by an admin', { byAdmin: true }, 'ignored'],
      ['a deletion by an admin', { change: 'delete', byAdmin: true, author: AUTHOR }, 'recorded'],
      ['a deletion by an admin of another author', { change: 'delete', byAdmin: true, author: STRANGER }, 'ignored'],
      ['a deletion by an admin of one of ours', { change: 'delete', byAdmin: true, ofOwn: true }, 'ignored'],
      ['a deletion by a member who is no admin', { change: 'delete', byAdmin: false, author: AUTHOR }, 'ignored'],
      ['an edit by the owner', { from: SELF, written: true }, 'ignored'],
      ['a deletion by the owner', { from: SELF, written: true, change: 'delete', author: AUTHOR }, 'recorded'],
      [
        'a deletion by the owner of one of ours',
        { from: SELF, written: true, change: 'delete', ofOwn: true },
        'ignored',
      ],
      [
        'a deletion by the owner in a chat',
        { from: SELF, written: true, change: 'delete', group: undefined },
        'ignored',
      ],
      ['an edit in another chat', { group: undefined }, 'recorded'],
    ] as [string, Partial<IncomingChange>, string][])('of somebody else: %s is %s', async (_, changes, outcome) => {
      const lease = await open()
      const group = 'group' in changes ? {} : { group: GROUP }
      const { group: __, ...rest } = changes
      const chat = rest.written && !group.group ? NUMBER : undefined
      await receive(lease, group)
      expect(await record(lease, { from: OTHER, ...rest, ...group, ...(chat && { chat }) })).toBe(outcome)
      const [line] = await lines(lease)
      expect(line).toMatchObject({ deletedAt: outcome === 'recorded' && group.group ? 5_000 : null, editedAt: null })
    })

    test('of ours is changed by the owner only', async () => {
      const lease = await open()
      const { instanceId } = lease
      const { id, whatsappId: target } = await acceptPrepared(context.store, lease, { to: NUMBER })
      await context.store.messages.recordProgress(lease, target, 'sent', 0)
      expect(await record(lease, { target })).toBe('ignored')
      const owner = { target, from: SELF, chat: NUMBER, written: true, ofOwn: true } as const
      expect(await record(lease, owner)).toBe('recorded')
      expect(await context.store.messages.find(instanceId, id)).toMatchObject({ text: 'new', editedAt: 5_000 })
      expect(await context.store.messages.findSent(instanceId, target)).toMatchObject({ editedText: 'new' })
      expect(await record(lease, { ...owner, id: 'D', change: 'delete' })).toBe('recorded')
      expect(await context.store.messages.find(instanceId, id)).toMatchObject({ text: '', deletedAt: 5_000 })
      expect(await context.store.messages.findSent(instanceId, target)).toBe(null)
      await context.store.messages.recordProgress(lease, target, 'read', 9)
      expect(await deliverAll(context.store, lease)).toEqual([
        'message.sent',
        'message.edited',
        'message.deleted',
        'message.delivered',
        'message.read',
      ])
    })

    test('by its author is changed even if the author was taken for an admin', async () => {
      const lease = await open()
      await receive(lease, { group: GROUP })
      const own = { group: GROUP, change: 'delete', byAdmin: false, author: AUTHOR } as const
      expect(await record(lease, { ...own, target: 'unknown' })).toBe('ignored')
      expect(await record(lease, own)).toBe('recorded')
      expect((await lines(lease))[0]).toMatchObject({ deletedAt: 5_000 })
    })

    test.each([
      ['an edit', 'edit', HOUR_MS],
      ['a deletion', 'delete', 72 * HOUR_MS],
    ] as const)('is not changed by %s that comes too late, which is reported', async (_, change, limitMs) => {
      const lease = await open()
      for (const [id, late] of [
        ['A', 0],
        ['B', 1],
      ] as const) {
        await receive(lease, { id, sentAt: 1_000 })
        const sentAt = 1_000 + limitMs + late
        expect(await record(lease, { id: `of ${id}`, target: id, change, sentAt })).toBe('recorded')
      }
      const changed = (await lines(lease)).flatMap(({ id, editedAt, deletedAt }) =>
        (editedAt ?? deletedAt) ? [id] : [],
      )
      expect(changed).toEqual(['A'])
      const kind = change === 'edit' ? 'message.edited' : 'message.deleted'
      expect((await deliverAll(context.store, lease)).filter(found => found === kind)).toHaveLength(2)
    })

    test('keeps its last edit if an earlier one arrives late', async () => {
      const lease = await open()
      await receive(lease)
      await record(lease, { sentAt: 9_000, text: 'last' })
      expect(await record(lease, { id: 'E1', sentAt: 8_000, text: 'earlier' })).toBe('recorded')
      expect(await lines(lease)).toMatchObject([{ text: 'last', editedAt: 9_000 }])
      await record(lease, { id: 'E2', sentAt: 9_000, text: 'same second' })
      expect(await lines(lease)).toMatchObject([{ text: 'same second', editedAt: 9_000 }])
    })

    test('and was deleted can be neither edited nor quoted, and its preview is erased', async () => {
      const lease = await open()
      const { instanceId } = lease
      const { messages } = context.store
      await receive(lease)
      await record(lease, { id: 'D', change: 'delete' })
      const [line] = await lines(lease)
      expect(await messages.findQuoted(instanceId, (line as { messageId: string }).messageId)).toBe(null)
      const preview = { url: 'https://example.org', title: 'Example' }
      const { id, whatsappId: target } = await acceptPrepared(context.store, lease, {
        to: NUMBER,
        extras: { preview, metadata: { order: 7 } },
      })
      await messages.recordProgress(lease, target, 'sent', Date.now())
      const command = await acceptPrepared(context.store, lease, {
        id: newCommandId(1),
        to: NUMBER,
        extras: { command: { kind: 'edit', text: 'late', targetId: id } },
      })
      const owner = { target, from: SELF, chat: NUMBER, written: true, ofOwn: true } as const
      await record(lease, { ...owner, id: 'D2', change: 'delete' })
      expect(await messages.findQuoted(instanceId, id)).toBe(null)
      await messages.recordProgress(lease, command.whatsappId, 'sent', 9)
      const erased = await messages.find(instanceId, id)
      expect(erased).toMatchObject({ text: '', editedAt: null, deletedAt: 5_000, extras: { metadata: { order: 7 } } })
      expect(erased?.extras).not.toHaveProperty('preview')
    })

    test('that is unknown here is reported immediately', async () => {
      const lease = await open()
      expect(await record(lease, { lid: LID })).toBe('recorded')
      const [delivery] = await listReady(context.store, lease.instanceId)
      expect(bodyOf(delivery!).data).toEqual({
        id: 'A',
        messageId: null,
        chat: NUMBER,
        direction: 'in',
        by: NUMBER,
        text: 'new',
      })
    })
  })
}
