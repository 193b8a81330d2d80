import { expect, it } from 'vitest'
import { until } from './wait.ts'
import { jid, link, startSimulator } from './world.ts'

const CONTACT = '5511999990001'
const GROUP = '120363000000000777@g.us'

it('a contact reacts, edits, deletes, votes and types, and the client sees each as its contact meant it', async () => {
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

it("the contact's phone shows what the client reacts to, edits, deletes and polls, and its votes count", async () => {
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
