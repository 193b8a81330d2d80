import { expect, it } from 'vitest'
import { startNetwork, startProgram } from '../program.ts'
import { until } from '../wait.ts'

const [ANA, CONTACT, SAVED] = ['5511900000001', '5511999990001', '5511999990002'] as const
const jid = (number: string) => `${number}@s.whatsapp.net`

it.each(['LID', 'number'])(
  'a client that is linked later sees the changes of chats that were named by %s',
  async by => {
    const simulator = await startNetwork()
    const first = await startProgram(simulator, ANA, 'Ana')
    await simulator.writeAs({ from: CONTACT, to: ANA, text: 'hello' })
    const { key, messageTimestamp } = await first.received(
      ({ message }) => message?.conversation === 'hello',
      'the text',
    )
    const lastMessages = [{ key, messageTimestamp: messageTimestamp! }]
    const chat = by === 'LID' ? key.remoteJid! : jid(CONTACT)
    await first.sock.chatModify({ archive: true, lastMessages }, chat)
    await first.sock.chatModify({ pin: true }, chat)
    await first.sock.chatModify({ mute: 2_000_000_000_000 }, chat)
    await first.sock.chatModify({ markRead: false, lastMessages }, chat)
    const chatOf = async () => {
      const later = await startProgram(simulator, ANA, 'Ana')
      const { chats } = await until(() => later.all('messaging-history.set')[0], 'the history')
      const found = chats.find(({ id }) => id === key.remoteJid)
      await later.sock.chatModify({ archive: false, lastMessages }, chat)
      return found
    }
    const archived = await chatOf()
    expect(archived).toMatchObject({ archived: true, markedAsUnread: true })
    expect(Number(archived?.muteEndTime)).toBe(2_000_000_000_000)
    expect(archived?.pinned).toBeGreaterThan(1_700_000_000)
    expect(await chatOf()).toMatchObject({ archived: false, markedAsUnread: true })
  },
)

it('a contact that the phone saves while a client is linked reaches that client, and every client linked later', async () => {
  const simulator = await startNetwork()
  const ana = await startProgram(simulator, ANA, 'Ana')
  await until(() => ana.creds.accountSyncCounter > 0, 'the end of the sync')
  const namesOf = (program: typeof ana) =>
    new Map(program.all('contacts.upsert').flatMap(contacts => contacts.map(({ id, name }) => [id, name])))
  await simulator.saveContacts(ANA, [{ number: CONTACT, name: 'Carla' }])
  await until(() => namesOf(ana).get(jid(CONTACT)) === 'Carla', 'the contact')
  await simulator.saveContacts(ANA, [
    { number: CONTACT, name: 'Carla Souza' },
    { number: SAVED, name: 'Davi' },
  ])
  await until(() => namesOf(ana).get(jid(SAVED)) === 'Davi', 'the second contact')
  expect(namesOf(ana).get(jid(CONTACT))).toBe('Carla Souza')
  const later = await startProgram(simulator, ANA, 'Ana')
  await until(() => namesOf(later).size === 2, 'the address book')
  expect([...namesOf(later).values()].toSorted()).toEqual(['Carla Souza', 'Davi'])
})

it('the history has the messages of both sides with their current text', async () => {
  const simulator = await startNetwork()
  const first = await startProgram(simulator, ANA, 'Ana')
  await simulator.writeAs({ from: CONTACT, to: ANA, text: 'hello' })
  const hello = await first.received(({ message }) => message?.conversation === 'hello', 'the text')
  const write = async (to: string, text: string) => (await first.sock.sendMessage(jid(to), { text }))!
  const [answer, wrong] = [await write(CONTACT, 'anser'), await write(CONTACT, 'wrong')]
  await write(SAVED, 'to somebody who never wrote')
  await first.sock.sendMessage(hello.key.remoteJid!, { react: { text: '👍', key: hello.key } })
  await first.sock.sendMessage(jid(CONTACT), { text: 'answer', edit: answer.key })
  await first.sock.sendMessage(jid(CONTACT), { delete: wrong.key })
  await until(async () => (await simulator.inbox(CONTACT)).some(({ deleted }) => deleted), 'the deletion')
  const later = await startProgram(simulator, ANA, 'Ana')
  const { chats, messages } = await until(() => later.all('messaging-history.set')[0], 'the history')
  const textOf = ({ message }: (typeof messages)[number]) => message?.conversation || message?.extendedTextMessage?.text
  expect(messages.map(one => [one.key.fromMe, textOf(one)]).toSorted()).toEqual([
    [false, 'hello'],
    [true, 'answer'],
    [true, 'to somebody who never wrote'],
  ])
  expect(chats.map(({ unreadCount }) => unreadCount)).toEqual([0, 0])
})
