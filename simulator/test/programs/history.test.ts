import type { Simulator } from '@pombal/simulator'
import { beforeEach, expect, it } from 'vitest'
import { type Program, startNetwork, startProgram } from '../program.ts'
import { until } from '../wait.ts'

const [ANA, RUI] = ['5511900000001', '5511900000002'] as const
const CONTACT = '5511999990001'
const jid = (number: string) => `${number}@s.whatsapp.net`

let logged: string[]
let simulator: Simulator
let ana: Program

beforeEach(async () => {
  logged = []
  simulator = await startNetwork(logged)
  ana = await startProgram(simulator, ANA, 'Ana')
})

it('on request, the phone sends earlier messages of a chat, in both directions', async () => {
  const first = (await ana.sock.sendMessage(jid(CONTACT), { text: 'first' }))!
  await until(async () => (await simulator.inbox(CONTACT)).length === 1, 'the first text')
  for (const text of ['second', 'third']) await simulator.writeAs({ from: CONTACT, to: ANA, text })
  await simulator.writeAs({ from: '5511999990002', to: ANA, text: 'another chat' })
  const third = await ana.received(({ message }) => message?.conversation === 'third', 'the third text')
  const asked = async (count: number) => {
    const session = await ana.sock.fetchMessageHistory(count, third.key, Number(third.messageTimestamp))
    const isAnswer = ({ peerDataRequestSessionId }: { peerDataRequestSessionId?: string | null }) =>
      peerDataRequestSessionId === session
    const { messages } = await until(() => ana.all('messaging-history.set').find(isAnswer), 'the history')
    return messages
  }
  const textOf = ({ message }: Awaited<ReturnType<typeof asked>>[number]) =>
    message?.conversation || message?.extendedTextMessage?.text
  expect((await asked(1)).map(textOf)).toEqual(['second'])
  const earlier = (await asked(50)).map(one => [textOf(one), one.key.fromMe, one.key.id])
  // While Baileys buffers events, it leaves out what an earlier answer held.
  expect(earlier.filter(([text]) => text !== 'second')).toEqual([['first', true, first.key.id]])
})

it('the phone sends a message again that its client got without content', async () => {
  await simulator.writeAs({ from: CONTACT, to: ANA, text: 'lost', unavailable: true })
  const lost = await ana.received(({ messageStubType }) => messageStubType, 'the message without content')
  await ana.sock.requestPlaceholderResend(lost.key, lost)
  await until(
    () =>
      [
        ...ana.all('messages.upsert').flatMap(({ messages }) => messages.map(({ key, message }) => ({ key, message }))),
        ...ana.all('messages.update').flatMap(all => all.map(({ key, update }) => ({ key, message: update.message }))),
      ].some(({ key, message }) => key.id === lost.key.id && message?.conversation === 'lost'),
    'the copy',
  )
})

it('a copy names its author, and shows whether the account itself wrote it', async () => {
  const theirs = await simulator.writeAs({ from: CONTACT, to: ANA, text: 'theirs', name: 'Carla' })
  const own = await simulator.writeAsOwner({ phone: ANA, to: CONTACT, text: 'own' })
  /** The copy, which arrives after the message itself. */
  const copyOf = (id: string) =>
    ana.all('messages.upsert').flatMap(({ messages }) => messages.filter(({ key }) => key.id === id))[1]
  for (const { id } of [theirs, own]) {
    const { key } = await ana.received(message => message.key.id === id, 'the message')
    await ana.sock.requestPlaceholderResend(key)
    await until(() => copyOf(id), 'the copy')
  }
  expect(copyOf(theirs.id)).toMatchObject({ key: { fromMe: false }, pushName: 'Carla' })
  expect(copyOf(own.id)).toMatchObject({ key: { fromMe: true }, message: { conversation: 'own' } })
  expect(copyOf(own.id)?.key.remoteJid).toBe(copyOf(theirs.id)?.key.remoteJid)
})

it('a message to a channel or a broadcast list is refused, and statistics are accepted', async () => {
  const statusOf = (id: string | null | undefined) => [
    ...ana
      .all('messages.update')
      .flatMap(all => all.filter(({ key }) => key.id === id).map(({ update }) => update.status)),
    ...ana
      .all('messages.upsert')
      .flatMap(({ messages }) => messages.filter(({ key }) => key.id === id).map(one => one.status)),
  ]
  for (const to of ['120363000000000001@newsletter', '123@broadcast']) {
    const sent = (await ana.sock.sendMessage(to, { text: 'x' }, { statusJidList: [jid(CONTACT)] }))!
    await until(() => statusOf(sent.key.id).includes(0), `the refusal of ${to}`)
  }
  await ana.sock.sendWAMBuffer(Buffer.from('statistics'))
  await expect(ana.sock.communityCreate('Town', 'All of us')).rejects.toThrow('bad-request')
  expect(logged).toEqual([expect.stringContaining('<parent ')])
})

it('a person whom nobody may add gets a personal invitation, and joins with it', async () => {
  const rui = await startProgram(simulator, RUI, 'Rui')
  await rui.sock.updateGroupsAddPrivacy('none' as 'all')
  const { id } = await ana.sock.groupCreate('Lunch', [jid(CONTACT)])
  const add = async () => {
    const [answer] = await ana.sock.groupParticipantsUpdate(id, [rui.jid], 'add')
    expect(answer?.status).toBe('403')
    const { content } = answer!.content as { content: { attrs: Record<string, string> }[] }
    return {
      inviteCode: content[0]!.attrs['code']!,
      inviteExpiration: Number(content[0]!.attrs['expiration']),
      groupJid: id,
    }
  }
  const revoked = await add()
  expect(await ana.sock.groupRevokeInviteV4(id, rui.jid)).toBe(true)
  await expect(rui.sock.groupAcceptInviteV4(ana.jid, revoked)).rejects.toThrow('not-acceptable')
  const invite = await add()
  const sent = await ana.sock.sendMessage(rui.jid, { text: 'join us' })
  await rui.received(({ key }) => key.id === sent?.key.id, 'the text')
  expect(await rui.sock.groupAcceptInviteV4(ana.jid, invite)).toBe(id)
  expect((await rui.sock.groupMetadata(id)).participants.map(({ phoneNumber }) => phoneNumber)).toContain(rui.jid)
  await expect(rui.sock.groupAcceptInviteV4(ana.jid, invite)).rejects.toThrow('not-acceptable')
})
