import { proto } from 'baileys'
import { afterEach, describe, expect, test } from 'vitest'
import type { RequestedExtras } from '../../../../src/domain/conversation.ts'
import { newCommandId, newMessageId } from '../../../../src/domain/ids.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { NewMessage } from '../../../../src/store/messages/messages.ts'
import type { Store } from '../../../../src/store/store.ts'
import { createConnected, deliverAll, incoming, newMessage } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'

const THEM = '5511987654321'
const LID = '123456789012345@lid'
const OTHER = '5511911112222'
const GROUP = '120363041234567890@g.us'
const DAY_MS = 86_400_000

export function answersToContactsContract(createHarness: CreateHarness): void {
  describe('what the instance sent about messages of a contact in groups', () => {
    let harness: StoreHarness
    let store: Store
    let lease: Lease
    afterEach(() => harness.dispose())

    /** Receives a message from this person in the group. @returns its ID */
    async function receive(from: string, now: number): Promise<string> {
      const lid = from === THEM ? LID : null
      const message = incoming({ from, lid, group: GROUP, text: `words of ${from}` })
      await store.events.storeIncoming(lease, message, now)
      const rows = await harness.execute(`select id from incoming_messages where sender = '${from}'`)
      return rows[0]!['id'] as string
    }

    async function accept(from: string, extras: RequestedExtras, now: number): Promise<NewMessage> {
      const id = extras.command === undefined ? newMessageId(now) : newCommandId(now)
      const message = newMessage(lease.instanceId, { id, to: GROUP, text: `answer to ${from}`, extras })
      expect(await store.messages.accept(message, now)).toMatchObject({ kind: 'accepted' })
      return message
    }

    /** Sends a command or an answer. */
    async function send(from: string, extras: RequestedExtras, now: number): Promise<NewMessage> {
      const message = await accept(from, extras, now)
      await finish(from, message, now)
      return message
    }

    /** Sends what is queued. It is encoded as the composer does it. */
    async function finish(from: string, message: NewMessage, now: number): Promise<void> {
      const { id, extras } = message
      const participant = from === THEM ? LID : `${from}@s.whatsapp.net`
      const quotedMessage = { conversation: `words of ${from}` }
      const contextInfo = { stanzaId: 'ID', participant, quotedMessage, expiration: 86_400 }
      const extendedTextMessage = { text: message.text, ...(extras?.quote && { contextInfo }) }
      const content = proto.Message.encode({ extendedTextMessage }).finish()
      await store.messages.recordPrepared(lease, id, { address: GROUP, content })
      await store.messages.recordProgress(lease, message.whatsappId, 'sent', now)
    }

    async function everythingSent(): Promise<string> {
      const rows = await harness.execute('select recipient, text, address, extras, content from messages')
      const texts = rows.map(({ content, ...row }) => [JSON.stringify(row), Buffer.from((content ?? '') as Uint8Array)])
      return texts.flat().join('\n')
    }

    test.each([THEM, LID])('is exported, and loses the person in the erasure, named as %s', async name => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const then = now - 2 * DAY_MS
      const answers: NewMessage[] = []
      for (const from of [THEM, OTHER]) {
        const targetId = await receive(from, then)
        await send(from, { command: { kind: 'read', targetId } }, then)
        await send(from, { command: { kind: 'reaction', emoji: '👍', targetId } }, then)
        answers.push(await send(from, { quote: targetId, metadata: { author: 'Ana' } }, then))
        if (from === THEM) await send(THEM, { quote: targetId }, now)
      }
      const [theirs] = await harness.execute(`select id from incoming_messages where sender = '${THEM}'`)
      const queued = newMessage(instanceId, { to: GROUP, extras: { quote: theirs!['id'] as string } })
      await store.messages.accept(queued, now)
      await deliverAll(store, lease)

      const data = await store.retention.openContact(instanceId, name, now + 1_000)
      const exported: string[] = []
      for await (const { entry } of data.messages()) exported.push(entry.direction)
      expect(exported).toEqual(['in', 'out', 'out', 'out', 'command', 'command'])

      expect(await store.retention.eraseContact(instanceId, name, now)).toMatchObject({ messages: 2, kept: 2 })
      expect((await everythingSent()).match(/words of 5511987654321/g)).toHaveLength(1)
      await store.messages.recordFailure(lease, queued, { code: 'expired', message: 'Too late.' }, now)
      await deliverAll(store, lease)
      const later = now + 2 * DAY_MS
      expect(await store.retention.eraseContact(instanceId, name, later)).toMatchObject({ messages: 0, kept: 0 })
      const left = await everythingSent()
      expect(left).not.toMatch(/words of 5511987654321|5511987654321@|123456789012345/)
      expect(left).toMatch(/words of 5511911112222/)

      // The instance's own messages stay as they were sent, apart from the quotation.
      const [answer, other] = await Promise.all(answers.map(({ id }) => store.messages.find(instanceId, id)))
      expect(answer).toMatchObject({ text: `answer to ${THEM}`, extras: { metadata: { author: 'Ana' } } })
      expect(answer!.extras).not.toHaveProperty('quote')
      expect(other!.extras).toHaveProperty('quote')
      const sent = await store.messages.findSent(instanceId, answers[0]!.whatsappId)
      expect(proto.Message.decode(sent!.content).extendedTextMessage).toMatchObject({
        text: `answer to ${THEM}`,
        contextInfo: { expiration: 86_400 },
      })
      expect(await harness.execute(`select id from messages where id like 'cmd_%'`)).toHaveLength(3)
    })

    test('is found once if it is sent meanwhile, also at the end of a long queue', async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const quote = await receive(THEM, now)
      const settled = await send(THEM, { quote }, now)
      await harness.execute(`insert into messages (instance_id, id, recipient, text, whatsapp_id, state, created_at)
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000)
        select '${instanceId}', 'msg_' || i, '${OTHER}', '', i, 'queued', 1 from n`)
      const queued = await accept(THEM, { quote }, now)
      const data = await store.retention.openContact(instanceId, THEM, now + 1_000)
      const exported: string[] = []
      for await (const { entry } of data.messages()) {
        if (entry.direction !== 'out') continue
        exported.push(entry.message.id)
        if (exported.length === 1) await finish(THEM, queued, now)
      }
      expect(exported.toSorted()).toEqual([settled.id, queued.id].toSorted())
    })

    test('leaves read what was marked as read', async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const then = now - 2 * DAY_MS
      await receive(OTHER, then)
      await send(THEM, { command: { kind: 'read', targetId: await receive(THEM, then + 1) } }, then + 2)
      await deliverAll(store, lease)
      const unread = async () => (await store.conversations.listInbox(instanceId, { limit: 1 })).data[0]!.unreadCount
      expect(await unread()).toBe(0)

      expect(await store.retention.eraseContact(instanceId, THEM, now)).toMatchObject({ messages: 1, kept: 0 })
      expect(await unread()).toBe(0)
      expect(await everythingSent()).not.toMatch(/123456789012345/)
      const nothing = { messages: 0, events: 0, files: 0, kept: 0 }
      expect(await store.retention.eraseContact(instanceId, THEM, now)).toEqual(nothing)
    })
  })
}
