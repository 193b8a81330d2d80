import { describe, expect, test } from 'vitest'
import { newCommandId, newMessageId } from '../../../../src/domain/ids.ts'
import type { IncomingMessage } from '../../../../src/domain/incoming-message.ts'
import type { ChatEntry } from '../../../../src/store/conversations/conversations.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { NewMessage } from '../../../../src/store/messages/messages.ts'
import type { Store } from '../../../../src/store/store.ts'
import { accept, createConnected, deliverAll, incoming, PREPARED, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'
import { describing } from '../directory/groups.ts'
import { fileOf } from '../media/downloads.ts'

const ANA = '5511988880000'
const ANA_LID = '990000007654321@lid'
const BEA = '5511988880001'
const GROUP = '120363000000000777@g.us'
const OTHER_GROUP = '120363000000000778@g.us'
const START = 1_790_000_000_000

export function inboxContract(createHarness: CreateHarness): void {
  describe('an inbox', () => {
    const context = withStore(createHarness)
    let at = START

    async function receive(store: Store, lease: Lease, message: Partial<IncomingMessage>): Promise<string> {
      at += 1_000
      expect(await store.events.storeIncoming(lease, incoming(message), at)).toBe('recorded')
      const { data } = await store.events.list(lease.instanceId, { limit: 1 })
      return data[0]!.messageId!
    }

    /** A message or command that WhatsApp has acknowledged. */
    async function send(store: Store, lease: Lease, to: string, changes: Partial<NewMessage> = {}): Promise<string> {
      at += 1_000
      const id = changes.extras?.command ? newCommandId(at) : newMessageId(at)
      const { whatsappId } = await accept(store, lease.instanceId, { id, to, ...changes })
      await store.messages.recordPrepared(lease, id, { ...PREPARED, address: addressOf(to) })
      await store.messages.recordProgress(lease, whatsappId, 'sent', at)
      return id
    }

    const unread = async (store: Store, { instanceId }: Lease) =>
      Object.fromEntries(
        (await store.conversations.listInbox(instanceId, { limit: 10 })).data.map(({ chat, unreadCount }) => [
          chat,
          unreadCount,
        ]),
      )

    test('messages are unread until one is sent to the chat or one is marked as read; reactions do not count', async () => {
      const { store } = context
      const lease = await createConnected(store)
      await receive(store, lease, { from: ANA })
      await receive(store, lease, { from: ANA })
      const reaction = { whatsappId: 'X', emoji: '👍' }
      await receive(store, lease, { from: ANA, type: 'reaction', details: { reaction } })
      await receive(store, lease, { from: BEA, group: GROUP })
      expect(await unread(store, lease)).toEqual({ [ANA]: 2, [GROUP]: 1 })
      await send(store, lease, ANA)
      expect(await unread(store, lease)).toEqual({ [ANA]: 0, [GROUP]: 1 })
      const second = await receive(store, lease, { from: ANA })
      const third = await receive(store, lease, { from: ANA })
      await send(store, lease, ANA, { extras: { command: { kind: 'reaction', emoji: '👍', targetId: third } } })
      expect(await unread(store, lease)).toEqual({ [ANA]: 2, [GROUP]: 1 })
      await send(store, lease, ANA, { extras: { command: { kind: 'read', targetId: second } } })
      expect(await unread(store, lease)).toEqual({ [ANA]: 1, [GROUP]: 1 })
      const failed = await accept(store, lease.instanceId, { id: newMessageId(at + 1), to: ANA })
      await store.messages.recordPrepared(lease, failed.id, { ...PREPARED, address: addressOf(ANA) })
      const failure = { code: 'rejected_by_whatsapp', message: 'No.' } as const
      await store.messages.recordFailure(lease, { id: failed.id, whatsappId: failed.whatsappId }, failure, at)
      expect(await unread(store, lease)).toEqual({ [ANA]: 1, [GROUP]: 1 })
      await receive(store, lease, { from: '5511900000000', written: true, chat: ANA })
      expect(await unread(store, lease)).toEqual({ [ANA]: 0, [GROUP]: 1 })
      const chats = (await store.conversations.listInbox(lease.instanceId, { limit: 9 })).data
      const ana = chats.find(({ chat }) => chat === ANA)
      expect([ana?.lastLine?.direction, ana?.lastReceivedId]).toEqual(['written', third])
      const { data } = await store.conversations.listLines(
        lease.instanceId,
        { limit: 9 },
        { chat: ANA, status: 'written' },
      )
      expect(data.map(({ direction }) => direction)).toEqual(['written'])
    })

    test('a message that is read stays so if only its file keeps it longer than the read mark', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const terms = { quotaBytes: 1_000, retentionMs: 86_400_000 }
      const image = incoming({ from: ANA, type: 'image', file: fileOf() })
      await store.events.storeIncoming(lease, image, at, terms)
      const list = async (unreadSince?: number) =>
        (await store.conversations.listInbox(lease.instanceId, { limit: 9 }, undefined, unreadSince)).data
      const targetId = (await list())[0]!.lastReceivedId!
      await send(store, lease, ANA, { extras: { command: { kind: 'read', targetId } } })
      await deliverAll(store, lease)
      const before = at + 1_000
      while ((await store.retention.step(before, before)) > 0);
      const { data } = await store.conversations.listEntries(lease.instanceId, { limit: 9 }, ANA)
      expect(data.map(idOf)).toEqual([targetId])
      expect(await list(before)).toMatchObject([{ chat: ANA, unreadCount: 0, lastReceivedId: targetId }])
    })

    test('each chat has its last message, and the latest chat is first, even within a minute', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await receive(store, lease, { from: ANA, name: 'Ana' })
      await receive(store, lease, { from: BEA })
      const last = await send(store, lease, ANA, { text: 'the last one' })
      const list = async (search?: string) =>
        (await store.conversations.listInbox(instanceId, { limit: 10 }, search)).data.map(({ chat, lastLine }) => [
          chat,
          lastLine?.message.text,
        ])
      expect(await list()).toEqual([
        [ANA, 'the last one'],
        [BEA, 'Hi'],
      ])
      expect(await list('ana')).toEqual([[ANA, 'the last one']])
      const byLid = { from: ANA_LID.slice(0, -4), addressing: 'lid', lid: ANA_LID, chat: ANA_LID } as const
      await receive(store, lease, { ...byLid, text: 'who am I?' })
      expect((await list())[0]).toEqual([ANA_LID, 'who am I?'])
      const { data } = await store.conversations.listInbox(instanceId, { limit: 1 })
      expect(data).toHaveLength(1)
      const { lastLine } = (await store.conversations.listInbox(instanceId, { limit: 10 }, 'ana')).data[0]!
      expect(lastLine).toMatchObject({ direction: 'out', message: { id: last } })
    })

    test('a group has its subject as its name, and a contact the name in the address book; both are found by it, even after leaving the group', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await receive(store, lease, { from: ANA, name: 'aninha' })
      await receive(store, lease, { from: BEA, group: GROUP, name: 'bea' })
      const self = { phone: '5511900000000', lid: '1@lid' }
      const group = describing({ id: GROUP, subject: 'Ação de sexta' })
      await store.directory.recordGroups(lease, [group], { self, askedAt: 1, now: 1, reason: 'listed' })
      const unknown = { lid: null, pushName: null, username: null, lastMessageAt: null }
      await store.directory.recordContacts(lease, [{ ...unknown, chat: ANA, name: 'Ana Lima' }])
      const names = async (search?: string) =>
        (await store.conversations.listInbox(instanceId, { limit: 10 }, search)).data.map(({ name }) => name)
      expect(await names()).toEqual(['Ação de sexta', 'Ana Lima'])
      expect(await names('acao')).toEqual(['Ação de sexta'])
      expect(await names('LIMA')).toEqual(['Ana Lima'])
      expect(await names('aninha')).toEqual(['Ana Lima'])
      expect(await names('nobody')).toEqual([])
      await receive(store, lease, { from: BEA, group: OTHER_GROUP })
      for (const id of [GROUP, OTHER_GROUP]) await store.directory.recordNoMember(lease, id, { askedAt: 2, now: 2 })
      expect(await names()).toEqual([null, 'Ação de sexta', 'Ana Lima'])
      expect(await names('acao')).toEqual(['Ação de sexta'])
    })

    test('a conversation has the messages under every address of the other side and what was done with them, in their order', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const byLid = await receive(store, lease, {
        from: ANA_LID.slice(0, -4),
        addressing: 'lid',
        lid: ANA_LID,
        chat: ANA_LID,
      })
      const byNumber = await receive(store, lease, { from: ANA, lid: ANA_LID })
      const toLid = await send(store, lease, ANA_LID)
      const reaction = await send(store, lease, ANA, {
        extras: { command: { kind: 'reaction', emoji: '🎉', targetId: byNumber } },
      })
      const toNumber = await send(store, lease, ANA)
      const queued = await accept(store, instanceId, { id: newMessageId(at + 1_000), to: ANA })
      const unwritten = await accept(store, instanceId, { id: newMessageId(at + 2_000), to: ANA })
      const failure = { code: 'expired', message: 'Too late.' } as const
      await store.messages.recordFailure(lease, { id: unwritten.id, whatsappId: unwritten.whatsappId }, failure, at)
      await receive(store, lease, { from: BEA, group: GROUP })
      await send(store, lease, BEA)
      const expected = [unwritten.id, queued.id, toNumber, reaction, toLid, byNumber, byLid]
      for (const chat of [ANA, ANA_LID]) {
        const { data } = await store.conversations.listEntries(instanceId, { limit: 10 }, chat)
        expect(data.map(idOf)).toEqual(expected)
        expect(data[3]).toMatchObject({
          direction: 'command',
          command: { messageId: byNumber, command: { emoji: '🎉' } },
        })
        const paged: string[] = []
        let cursor: string | undefined
        do {
          const page = await store.conversations.listEntries(instanceId, { limit: 2, cursor }, chat)
          paged.push(...page.data.map(idOf))
          cursor = page.nextCursor ?? undefined
        } while (cursor)
        expect(paged).toEqual(expected)
        const lines = await store.conversations.listLines(instanceId, { limit: 10 }, { chat })
        expect(lines.data.map(idOf)).toEqual(expected.filter(id => id !== reaction))
      }
    })

    const BY_LID = { from: ANA_LID.slice(0, -4), addressing: 'lid', lid: ANA_LID, chat: ANA_LID } as const
    const IN_ADDRESS_BOOK = {
      chat: ANA,
      lid: ANA_LID,
      name: 'Ana',
      pushName: null,
      username: null,
      lastMessageAt: null,
    }

    test.each([
      ['writes in a group', ['by LID', 'in a group']],
      ['is in the address book, which is reported later', ['by LID', 'address book']],
      ['is in the address book, which is reported before', ['address book', 'by LID']],
    ])('somebody who writes by LID keeps the chat and stays a contact if the number %s', async (_, steps) => {
      const { store } = context
      const lease = await createConnected(store)
      for (const step of steps) {
        if (step === 'by LID') await receive(store, lease, BY_LID)
        else if (step === 'in a group') await receive(store, lease, { from: ANA, lid: ANA_LID, group: GROUP })
        else await store.directory.recordContacts(lease, [IN_ADDRESS_BOOK])
      }
      expect(await unread(store, lease)).toMatchObject({ [ANA]: 1 })
      expect(await store.numbers.isContact(lease.instanceId, [ANA])).toBe(true)
      at += 120_000
      await receive(store, lease, { from: BEA })
      at += 120_000
      await receive(store, lease, BY_LID)
      const { data } = await store.conversations.listChats(lease.instanceId, { limit: 3 })
      expect(data.slice(0, 2)).toMatchObject([
        { chat: ANA, phone: ANA, lid: ANA_LID, lastMessageAt: at },
        { chat: BEA },
      ])
      expect(data.map(({ chat }) => chat)).not.toContain(ANA_LID)
    })

    test('a person who changed numbers has one conversation, under every number and the LID', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const numbers = ['5511988880002', '5511988880004', '5511988880001', '5511988880003']
      for (const from of numbers) {
        at += 120_000
        await receive(store, lease, { from, lid: ANA_LID })
      }
      for (const chat of [ANA_LID, ...numbers]) {
        const { data } = await store.conversations.listLines(lease.instanceId, { limit: 9 }, { chat })
        expect(data.map(line => line.direction === 'in' && line.message.from)).toEqual(numbers.toReversed())
      }
    })

    test.each(['read', 'answered'])(
      'the chats of a person who changed numbers are read if the latest message is %s',
      async how => {
        const { store } = context
        const lease = await createConnected(store)
        const [former, current] = ['5511988880002', '5511988880004']
        await receive(store, lease, { from: former, lid: ANA_LID })
        at += 120_000
        const targetId = await receive(store, lease, { from: current, lid: ANA_LID })
        expect(await unread(store, lease)).toEqual({ [former]: 1, [current]: 1 })
        const mark = { extras: { command: { kind: 'read', targetId } } } as const
        await send(store, lease, current, how === 'read' ? mark : {})
        expect(await unread(store, lease)).toEqual({ [former]: 0, [current]: 0 })
        await receive(store, lease, { from: former, lid: ANA_LID })
        expect(await unread(store, lease)).toEqual({ [former]: 1, [current]: 0 })
      },
    )

    test('messages of both directions are found by a part of their text, without regard to case and accents', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const received = await receive(store, lease, { from: ANA, text: 'Meu PEDIDO não\n"chegou"' })
      const sent = await send(store, lease, BEA, { text: 'Seu pedido\n"saiu"' })
      await receive(store, lease, { from: ANA, text: 'Oi' })
      const find = async (search: string, chat?: string) =>
        (await store.conversations.listLines(instanceId, { limit: 10 }, { search, chat })).data.map(idOf)
      expect(await find('pedido')).toEqual([sent, received])
      expect(await find('nao')).toEqual([received])
      expect(await find('pedido', ANA)).toEqual([received])
      expect(await find('"CHEGOU')).toEqual([received])
      expect(await find('\n"')).toEqual([sent, received])
      expect(await find('\\n')).toEqual([])
      expect(await find('100%')).toEqual([])
    })

    test.each([
      ['чай', 'ЧАЙ'],
      ['Сергей', 'сергей'],
      ['ёлка', 'Елка'],
      ['tiếng Việt', 'TIENG VIET'],
      ['안녕', '안녕'],
      ['สวัสดี', 'สวัสดี'],
      ['नमस्ते', 'नमस्ते'],
      ['がんばる', 'がんばる'],
      ['Καλημέρα Ἰωάννης', 'ΚΑΛΗΜΕΡΑ ιωαννης'],
      ['مُحَمَّد', 'محمد'],
    ])(
      '%s in a text or in the name of a contact or instance is found as it is written, and as %s',
      async (text, other) => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        const received = await receive(store, lease, { from: ANA, text: `(${text})`, name: `(${text})` })
        const sent = await send(store, lease, BEA, { text: `(${text})` })
        await store.instances.rename(instanceId, `(${text})`)
        for (const search of [text, other, text.normalize('NFD')]) {
          const lines = await store.conversations.listLines(instanceId, { limit: 10 }, { search })
          expect(lines.data.map(idOf)).toEqual([sent, received])
          expect((await store.messages.list(instanceId, { limit: 10 }, { search })).data).toMatchObject([{ id: sent }])
          const chats = await store.conversations.listChats(instanceId, { limit: 10 }, search)
          expect(chats.data.map(({ chat }) => chat)).toEqual([ANA])
          expect((await store.instances.list({ limit: 10 }, { search, ids: [instanceId] })).data).toHaveLength(1)
        }
      },
    )
  })
}

function addressOf(to: string): string {
  return to.includes('@') ? to : `${to}@s.whatsapp.net`
}

function idOf(entry: ChatEntry): string {
  if (entry.direction === 'command') return entry.command.id
  return entry.direction === 'in' ? entry.message.messageId : entry.message.id
}
