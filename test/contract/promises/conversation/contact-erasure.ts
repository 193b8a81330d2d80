import { afterEach, describe, expect, test, vi } from 'vitest'
import { newCommandId, newEndpointId, newMessageId } from '../../../../src/domain/ids.ts'
import type { GroupMember } from '../../../../src/domain/recipients/group.ts'
import { NamingEvents } from '../../../../src/store/retention/naming-events.ts'
import type { Store } from '../../../../src/store/store.ts'
import { accept, attempt, createConnected, deliverAll, incoming, newMessage, PREPARED, URL } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'
import { describing } from '../directory/groups.ts'

const THEM = '5511987654321'
const OTHER_SPELLING = '551187654321'
const LID = '123456789012345@lid'
const OTHER = '5511911112222'
const GROUP = '120363041234567890@g.us'
const DAY_MS = 86_400_000

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

export function contactErasureContract(createHarness: CreateHarness): void {
  describe('erasing a contact', () => {
    let harness: StoreHarness
    let store: Store
    afterEach(() => harness.dispose())

    /** The content of the tables that may name a contact, as text. */
    async function everything(): Promise<string> {
      const parts: string[] = []
      for (const table of ['messages', 'incoming_messages', 'events', 'attempts', 'contacts', 'numbers', 'pace_uses'])
        parts.push(JSON.stringify(await harness.execute(`select * from ${table}`)))
      return parts.join('\n')
    }

    const idsOf = async (table: string) =>
      (await harness.execute(`select id from ${table}`)).map(({ id }) => id as string)
    const messageIds = async () => [...(await idsOf('messages')), ...(await idsOf('incoming_messages'))]
    const countOf = async (table: string) => (await harness.execute(`select number from ${table}`)).length

    test('erases messages in both directions and in groups, events and the name, leaves those of others, and can be repeated', async () => {
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

    test.each([THEM, OTHER_SPELLING, LID])('erases exactly what the export contains, named as %s', async name => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const then = now - 2 * DAY_MS
      for (const to of [THEM, OTHER_SPELLING, LID, OTHER]) {
        const message = newMessage(instanceId, { id: newMessageId(then), to, text: `sent to ${to}` })
        await store.messages.accept(message, then)
        // WhatsApp knows their number without the ninth digit.
        const address = to === LID ? LID : `${to === OTHER ? OTHER : OTHER_SPELLING}@s.whatsapp.net`
        await store.messages.recordPrepared(lease, message.id, { ...PREPARED, address })
        await store.messages.recordProgress(lease, message.whatsappId, 'read', then)
      }
      // More messages than one read of a chat returns, so it has to read several times.
      for (let n = 0; n < 60; n++) {
        const theirs = incoming({ from: OTHER_SPELLING, lid: LID, text: `theirs ${n}`, name: 'Their Name' })
        await store.events.storeIncoming(lease, theirs, then)
      }
      for (const from of [OTHER_SPELLING, OTHER])
        await store.events.storeIncoming(lease, incoming({ from, group: GROUP, text: `${from} in a group` }), then)
      await deliverAll(store, lease)
      const [ids, contacts] = [await messageIds(), await countOf('contacts')]

      const data = await store.retention.openContact(instanceId, name, now)
      expect(new Set(data.names)).toEqual(new Set([THEM, OTHER_SPELLING, LID]))
      const exported: string[] = []
      for await (const { entry } of data.messages()) {
        if (entry.direction === 'command') throw new Error('There are no commands.')
        exported.push(entry.direction === 'out' ? entry.message.id : entry.message.messageId)
      }
      const events = await all(data.events())
      expect(exported).toHaveLength(64)

      const erased = await store.retention.eraseContact(instanceId, name, now)
      expect(erased).toMatchObject({ messages: exported.length, events: events.length, kept: 0 })
      const left = new Set(await messageIds())
      expect(new Set(exported)).toEqual(new Set(ids.filter(id => !left.has(id))))
      const blanked = await harness.execute(`select id from events where body like '%"erased":true%'`)
      expect(new Set(events.map(({ id }) => id))).toEqual(new Set(blanked.map(({ id }) => id)))
      expect(data.entries.contacts).toHaveLength(contacts - (await countOf('contacts')))
      const empty = await store.retention.openContact(instanceId, name, now)
      expect(await all(empty.messages())).toEqual([])
      expect(await all(empty.events())).toEqual([])
    })

    test('erases the names at once if something is kept, and the next message of the person brings them back', async () => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const theirs = { from: THEM, lid: LID, name: 'Their Name', username: 'their.name' }
      await store.events.storeIncoming(lease, incoming(theirs), 1_000)
      const names = { name: 'Saved Name', pushName: null, username: null }
      await store.directory.recordContacts(lease, [{ chat: THEM, lid: LID, ...names, lastMessageAt: null }])
      await accept(store, instanceId, { to: THEM, text: 'an answer' })
      await deliverAll(store, lease)
      const find = async (search: string) => (await store.directory.listContacts(instanceId, { limit: 9 }, search)).data
      expect(await find('saved name')).toHaveLength(1)

      expect(await store.retention.eraseContact(instanceId, THEM, Date.now())).toMatchObject({ messages: 1, kept: 1 })
      expect(await everything()).not.toMatch(/their.name|saved name/i)
      for (const search of ['their name', 'saved name']) expect(await find(search)).toEqual([])
      const chats = async () => (await store.conversations.listChats(instanceId, { limit: 9 })).data
      expect(await chats()).toMatchObject([{ chat: THEM, lid: LID, name: null, username: null }])
      await store.events.storeIncoming(lease, incoming(theirs), 2_000)
      expect(await chats()).toMatchObject([{ chat: THEM, lid: LID, name: 'Their Name', username: 'their.name' }])
    })

    test('keeps the chat of a message that arrives during the erasure, until that is erased too', async () => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const now = Date.now()
      const receive = () => store.events.storeIncoming(lease, incoming({ from: THEM, lid: LID }), now)
      await receive()
      await deliverAll(store, lease)
      const walk = NamingEvents.prototype.walk
      using _ = vi.spyOn(NamingEvents.prototype, 'walk').mockImplementationOnce(async function* (
        this: NamingEvents,
        ...call
      ) {
        await receive()
        yield* walk.apply(this, call)
      })
      const erase = () => store.retention.eraseContact(lease.instanceId, THEM, now)
      const chats = async () => (await store.conversations.listChats(lease.instanceId, { limit: 9 })).data
      expect(await erase()).toMatchObject({ messages: 1, kept: 1 })
      expect(await chats()).toMatchObject([{ chat: THEM, lid: LID }])
      await deliverAll(store, lease)
      expect(await erase()).toMatchObject({ messages: 1, kept: 0 })
      expect(await chats()).toEqual([])
    })

    test('in groups, a number, a LID and an assistant with the same digits are three senders', async () => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const now = Date.now()
      const senders = { [THEM]: undefined, [`${THEM}@lid`]: 'lid', [`${THEM}@bot`]: 'other' } as const
      for (const addressing of Object.values(senders)) {
        const message = incoming({ from: THEM, group: GROUP, ...(addressing && { addressing }) })
        await store.events.storeIncoming(lease, message, now - 2 * DAY_MS)
      }
      await deliverAll(store, lease)
      for (const [at, sender] of Object.keys(senders).entries()) {
        expect(await store.retention.eraseContact(lease.instanceId, sender, now)).toMatchObject({ messages: 1 })
        expect(await idsOf('incoming_messages')).toHaveLength(2 - at)
      }
    })

    test('erases cancelled messages, their commands and the deletions that cancelled them', async () => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const then = Date.now() - 2 * DAY_MS
      const message = newMessage(instanceId, { id: newMessageId(then), to: THEM, notBefore: then + 1_000 })
      const id = message.id
      expect(await store.messages.accept(message, then)).toMatchObject({ kind: 'accepted' })
      for (const command of [
        { kind: 'edit', text: 'new', targetId: id } as const,
        { kind: 'delete', targetId: id } as const,
      ])
        expect(
          await store.messages.accept(
            newMessage(instanceId, { id: newCommandId(then), to: '', extras: { command } }),
            then,
          ),
        ).toMatchObject({ kind: 'accepted' })
      await deliverAll(store, lease)
      const exported = await all((await store.retention.openContact(instanceId, THEM, Date.now())).messages())
      expect(exported).toHaveLength(3)
      expect(await store.retention.eraseContact(instanceId, THEM, Date.now())).toMatchObject({ messages: 3, kept: 0 })
      expect(await everything()).not.toContain(THEM)
    })

    test.each([THEM, LID])(
      'removes only this person from events about the members of groups, named as %s',
      async name => {
        harness = await createHarness()
        store = await harness.open()
        const lease = await createConnected(store)
        const { instanceId } = lease
        const endpoint = { instanceId, id: newEndpointId(), secret: 'whsec_b3RoZXI=', events: ['group.changed'] }
        await store.endpoints.create({ ...endpoint, url: URL, active: true, description: null }, 1)
        const self = { phone: '5511900000000', lid: '1@lid' }
        const them: GroupMember = { phone: THEM, lid: LID, role: 'member' }
        const other: GroupMember = { phone: OTHER, lid: null, role: 'member' }
        await store.events.storeIncoming(lease, incoming({ from: THEM, lid: LID, text: 'hello' }), 1)
        // More groups than one read of the members examines.
        const otherGroups = Array.from({ length: 20 }, () => describing())
        const group = describing({ members: [{ ...self, role: 'member' }], memberCount: 1 })
        await store.directory.recordGroups(lease, [...otherGroups, group], {
          self,
          askedAt: 1,
          now: 1,
          reason: 'listed',
        })
        const report = (kind: 'add' | 'promote', members: GroupMember[], now: number) =>
          store.directory.recordGroupChanges(lease, group.id, [{ kind, members }], { self, now })
        await report('add', [them, other], 2)
        await report('promote', [them], 3)
        await report('promote', [other], 4)
        const bodies = async () =>
          (await harness.execute(`select body from events where kind = 'group.changed' order by seq`)).map(
            ({ body }) => JSON.parse(body as string).data,
          )
        const [theirs, others] = [
          { phone: THEM, lid: LID },
          { phone: OTHER, lid: null },
        ]
        expect(await bodies()).toMatchObject([
          { added: [theirs, others] },
          { promoted: [theirs] },
          { promoted: [others] },
        ])

        // The person's export contains nobody else.
        const data = await store.retention.openContact(instanceId, name, Date.now())
        expect(data.entries['groups']).toEqual([{ group: group.id, subject: group.subject, role: 'admin', as_of: 4 }])
        const reported = (await all(data.events())).filter(({ messageId }) => messageId === null)
        expect(reported.map(({ body }) => JSON.parse(body).data)).toMatchObject([
          { promoted: [theirs] },
          { added: [theirs] },
        ])
        expect(JSON.stringify(reported)).not.toContain(OTHER)

        // Nothing is erased that is still being posted.
        expect(await store.retention.eraseContact(instanceId, name, Date.now())).toMatchObject({ events: 0, kept: 3 })
        expect(await bodies()).toMatchObject([
          { added: [theirs, others] },
          { promoted: [theirs] },
          { promoted: [others] },
        ])
        await deliverAll(store, lease)
        for (const delivery of await store.deliveries.listFirst(instanceId, 0, 100, endpoint.id))
          await store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' })
        expect(await store.retention.eraseContact(instanceId, name, Date.now())).toMatchObject({ events: 3, kept: 0 })
        const left = await bodies()
        expect(left).toMatchObject([
          { added: [others], changed: ['members'] },
          { changed: ['roles'] },
          { promoted: [others] },
        ])
        expect(left[1]).not.toHaveProperty('promoted')
        expect(await everything()).not.toMatch(new RegExp(`${THEM}|${LID}`))
        const again = await store.retention.openContact(instanceId, name, Date.now())
        expect((await all(again.events())).filter(({ messageId }) => messageId === null)).toEqual([])
      },
    )

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

    test.each([THEM, OTHER, LID])('erases both numbers of a person who changed numbers, named as %s', async name => {
      harness = await createHarness()
      store = await harness.open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const then = now - 2 * DAY_MS
      const message = newMessage(instanceId, { id: newMessageId(then), to: THEM, text: 'to the old number' })
      await store.messages.accept(message, then)
      await store.messages.recordPrepared(lease, message.id, { ...PREPARED, address: `${THEM}@s.whatsapp.net` })
      await store.messages.recordProgress(lease, message.whatsappId, 'read', then)
      for (const from of [THEM, OTHER])
        await store.events.storeIncoming(lease, incoming({ from, lid: LID, name: 'Their Name' }), then)
      await deliverAll(store, lease)
      const { data } = await store.conversations.listLines(instanceId, { limit: 9 }, { chat: name })
      expect(data).toHaveLength(3)
      expect(new Set((await store.retention.openContact(instanceId, name, now)).names)).toEqual(
        new Set([THEM, OTHER, LID]),
      )
      expect(await store.retention.eraseContact(instanceId, name, now)).toMatchObject({ messages: 3, kept: 0 })
      expect(await everything()).not.toMatch(new RegExp(`${THEM}|${OTHER}|${LID}|Their Name|old number`))
    })
  })
}
