import { expect, it } from 'vitest'
import { MemoryStorage } from './memory-storage.ts'
import { until } from './wait.ts'
import { jid, link, startClient, startSimulator } from './world.ts'

const CONTACT = '5511999990001'
const GROUP = '120363000000000777@g.us'

it('a contact reacts, edits, deletes and types, and the client sees each of these actions', async () => {
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  const from = { from: CONTACT, to: client.phone }
  const reactions: { id: string; emoji: string; fromMe: boolean }[] = []
  const updates: { id: string; message: unknown }[] = []
  const typing: string[] = []
  client.sock.ev.on('messages.reaction', all => {
    for (const { key, reaction } of all)
      reactions.push({ id: key.id!, emoji: reaction.text ?? '', fromMe: key.fromMe === true })
  })
  client.sock.ev.on('messages.update', all => {
    for (const { key, update } of all) if ('message' in update) updates.push({ id: key.id!, message: update.message })
  })
  client.sock.ev.on('presence.update', ({ presences }) => {
    for (const { lastKnownPresence } of Object.values(presences)) typing.push(lastKnownPresence)
  })
  const mine = await client.send(jid(CONTACT), 'mine')
  await until(async () => (await simulator.inbox(CONTACT)).length === 1)
  const theirs = await simulator.writeAs({ ...from, text: 'thiers' })
  for (const emoji of ['👍', '']) await simulator.writeAs({ ...from, reaction: { to: mine, emoji } })
  await simulator.writeAs({ ...from, edit: { id: theirs.id, text: 'theirs' } })
  await simulator.writeAs({ ...from, delete: theirs.id })
  await until(() => updates.length === 2)
  expect(reactions).toEqual([
    { id: mine, emoji: '👍', fromMe: true },
    { id: mine, emoji: '', fromMe: true },
  ])
  expect(updates).toMatchObject([
    { id: theirs.id, message: { editedMessage: { message: { conversation: 'theirs' } } } },
    { id: theirs.id, message: null },
  ])
  expect((await simulator.inbox(client.phone))[0]).toMatchObject({ text: 'thiers', edited: 'theirs', deleted: true })

  await simulator.typeAs({ ...from, state: 'composing' })
  client.state.creds.me!.name = 'Ana'
  await client.sock.sendPresenceUpdate('available')
  await client.send(jid(CONTACT), 'after the presence')
  await until(async () => (await simulator.inbox(CONTACT)).some(({ text }) => text === 'after the presence'))
  await simulator.typeAs({ ...from, state: 'recording' })
  await until(() => typing.length > 0)
  expect(typing).toEqual(['recording'])
  await expect(simulator.writeAs({ ...from, edit: { id: mine, text: 'x' } })).rejects.toMatchObject({
    code: 'invalid_argument',
  })
})

it("the contact's phone shows the client's reactions, edits, deletions and polls, and the contact's vote counts", async () => {
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  const { id } = await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'theirs' })
  const { key } = await until(() => client.find('theirs'))
  await client.sock.sendMessage(key.remoteJid!, { react: { text: '❤️', key } })
  const sent = (await client.sock.sendMessage(jid(CONTACT), { text: 'frist' }))!
  await client.sock.sendMessage(jid(CONTACT), { text: 'first', edit: sent.key })
  await client.sock.sendMessage(jid(CONTACT), { delete: sent.key })
  const poll = (await client.sock.sendMessage(jid(CONTACT), {
    poll: { name: 'Lunch?', values: ['yes', 'no'], selectableCount: 1 },
  }))!
  const inbox = await until(async () => {
    const all = await simulator.inbox(CONTACT, true)
    return all.length === 5 && all
  })
  expect(inbox).toMatchObject([
    { reaction: { to: id, emoji: '❤️' } },
    { id: sent.key.id, text: 'frist', edited: 'first', deleted: true },
    { text: '', edit: { id: sent.key.id, text: 'first' } },
    { deletes: sent.key.id },
    { poll: { name: 'Lunch?', options: ['yes', 'no'] }, message: { pollCreationMessageV3: { name: 'Lunch?' } } },
  ])
  expect((await simulator.inbox(client.phone))[0]).toMatchObject({ id, reactions: { [client.phone]: '❤️' } })
  await simulator.writeAs({ from: CONTACT, to: client.phone, vote: { poll: poll.key.id!, options: ['no'] } })
  await until(() => client.seen.messages.some(({ message }) => message.message?.pollUpdateMessage))
  expect((await simulator.inbox(CONTACT))[4]).toMatchObject({ votes: { [CONTACT]: ['no'] } })
})

it('a contact reacts in a group and writes a message of any kind', async () => {
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  const from = { from: CONTACT, to: client.phone, group: GROUP }
  await simulator.writeAs({ ...from, content: { locationMessage: { degreesLatitude: 1.5, degreesLongitude: 2 } } })
  const seen = await until(() => client.seen.messages.find(({ message }) => message.message?.locationMessage))
  expect(seen.message.message?.locationMessage).toMatchObject({ degreesLatitude: 1.5 })
  const id = await client.send(GROUP, 'to all')
  await until(async () => (await simulator.inbox(CONTACT)).length === 1)
  await simulator.writeAs({ ...from, reaction: { to: id, emoji: '👍' } })
  const reaction = await until(() => client.seen.messages.find(({ message }) => message.message?.reactionMessage))
  expect(reaction.message.message?.reactionMessage?.key).toMatchObject({ id, fromMe: true, remoteJid: GROUP })
})

it("only an admin of a group can delete another member's message there", async () => {
  const [author, admin] = [CONTACT, '5511999990002'] as const
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  const { group } = await simulator.createGroup(admin, 'Team', [author, client.phone])
  const write = (from: string, message: object) => simulator.writeAs({ from, to: client.phone, group, ...message })
  const deleted = async () => {
    const inboxes = await Promise.all([client.phone, author, admin].map(number => simulator.inbox(number)))
    return new Set(inboxes.flat().flatMap(({ id, deleted: isDeleted }) => (isDeleted ? [id] : [])))
  }
  const mine = await client.send(group, 'mine')
  await until(async () => (await simulator.inbox(author)).length === 1)
  const { id: theirs } = await write(author, { text: 'theirs' })
  const { id: admins } = await write(admin, { text: "the admin's" })

  const refused = { code: 'invalid_argument', message: expect.stringContaining('nor is an admin') }
  for (const id of [mine, admins]) await expect(write(author, { delete: id })).rejects.toMatchObject(refused)
  await expect(write(admin, { group: undefined, delete: theirs })).rejects.toMatchObject(refused)
  const keyOf = (id: string, number: string) => ({ remoteJid: group, fromMe: false, id, participant: jid(number) })
  await write(author, { content: { protocolMessage: { key: keyOf(admins, admin), type: 'REVOKE' } } })
  const deletes = async (id: string, number: string) => {
    await client.sock.sendMessage(group, { delete: keyOf(id, number) })
    await until(async () => (await simulator.inbox(author)).some(message => message.deletes === id))
  }
  await deletes(theirs, author)
  expect(await deleted()).toEqual(new Set())

  for (const id of [mine, theirs]) await write(admin, { delete: id })
  expect(await deleted()).toEqual(new Set([mine, theirs]))
  for (const number of [author, admin])
    expect((await simulator.inbox(number)).find(({ id }) => id === mine)).toMatchObject({ deleted: true })
  await simulator.changeGroup(group, { promote: [client.phone] })
  await deletes(admins, admin)
  expect(await deleted()).toEqual(new Set([mine, theirs, admins]))
})

it.each([
  ['edited', 16 * 60_000],
  ['deleted', 61 * 3_600_000],
])('a message that is too old cannot be %s, whether by a contact or by the client', async (what, ageMs) => {
  const storage = new MemoryStorage()
  const before = await startSimulator({ storage })
  const client = await link(before, 'a')
  const mine = await client.send(jid(CONTACT), 'mine')
  await until(async () => (await before.inbox(CONTACT)).length === 1)
  const { id: theirs } = await before.writeAs({ from: CONTACT, to: client.phone, text: 'theirs' })
  await until(() => client.texts().includes('theirs'))
  client.stop()
  await before.close()
  makeOlder(storage.scopes.get('a')!, ageMs)

  const simulator = await startSimulator({ storage })
  const { phone } = await simulator.openAccount('a')
  const again = startClient(simulator.url, client.state)
  await until(() => again.isOpen)
  const isEdit = what === 'edited'
  const change = isEdit ? { edit: { id: theirs, text: 'late' } } : { delete: theirs }
  await expect(simulator.writeAs({ from: CONTACT, to: phone, ...change })).rejects.toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining(`cannot be ${what}`),
  })
  const key = { remoteJid: jid(CONTACT), fromMe: true, id: mine }
  await again.sock.sendMessage(jid(CONTACT), isEdit ? { text: 'late', edit: key } : { delete: key })
  await until(async () => (await simulator.inbox(CONTACT)).length === 2)
  expect((await simulator.inbox(CONTACT))[0]).not.toHaveProperty(what)
})

/** Moves all messages on the phones of a scope into the past. */
function makeOlder(records: Map<string, Uint8Array>, byMs: number): void {
  for (const [key, value] of records) {
    if (!key.startsWith('inbox/')) continue
    const message = JSON.parse(Buffer.from(value).toString())
    records.set(key, Buffer.from(JSON.stringify({ ...message, receivedAt: message.receivedAt - byMs })))
  }
}
