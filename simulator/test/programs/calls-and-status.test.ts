import type { Simulator } from '@pombal/simulator'
import { beforeEach, expect, it } from 'vitest'
import { type Program, startNetwork, startProgram } from '../program.ts'
import { until } from '../wait.ts'

const [ANA, RUI] = ['5511900000001', '5511900000002'] as const
const CONTACT = '5511999990001'
const STATUS = 'status@broadcast'
const jid = (number: string) => `${number}@s.whatsapp.net`

let logged: string[]
let simulator: Simulator
let ana: Program

beforeEach(async () => {
  logged = []
  simulator = await startNetwork(logged)
  ana = await startProgram(simulator, ANA, 'Ana')
})

const calls = () => ana.all('call').flat()

it('a program rejects the call of a contact, and is notified that another call ended', async () => {
  const { id } = await simulator.callAs({ from: CONTACT, to: ANA, video: true })
  const offer = await until(() => calls().find(call => call.id === id), 'the offer')
  expect(offer).toMatchObject({ status: 'offer', isVideo: true, isGroup: false, callerPn: jid(CONTACT) })
  await ana.sock.rejectCall(offer.id, offer.from)
  expect(await simulator.calls(CONTACT)).toMatchObject([{ id, to: ANA, state: 'rejected' }])
  await expect(ana.sock.rejectCall('no such call', offer.from)).rejects.toThrow('item-not-found')
  const missed = await simulator.callAs({ from: CONTACT, to: ANA })
  await simulator.endCall(missed.id)
  await until(() => calls().some(call => call.id === missed.id && call.status === 'timeout'), 'the end')
  expect((await simulator.calls(ANA)).map(({ state }) => state)).toEqual(['rejected', 'ended'])
  expect(logged).toEqual([])
  await expect(ana.sock.createCallLink('audio')).rejects.toThrow('bad-request')
  expect(logged).toEqual([expect.stringContaining('<link_create media="audio"/>')])
})

it('a status reaches the people whom the program names, and contacts post statuses too', async () => {
  const rui = await startProgram(simulator, RUI, 'Rui')
  const sent = (await ana.sock.sendMessage(
    STATUS,
    { text: 'at the beach' },
    { statusJidList: [rui.jid, jid(CONTACT)] },
  ))!
  const seen = await rui.received(({ key }) => key.id === sent.key.id, 'the status')
  expect(seen.key).toMatchObject({ remoteJid: STATUS, participant: ana.lid })
  expect(seen.message?.extendedTextMessage?.text).toBe('at the beach')
  expect(await simulator.inbox(CONTACT)).toMatchObject([{ id: sent.key.id, text: 'at the beach', group: STATUS }])
  expect(await simulator.inbox('5511999990002')).toEqual([])
  await simulator.writeAs({ from: CONTACT, to: ANA, group: STATUS, text: 'mine' })
  const theirs = await ana.received(({ message }) => message?.conversation === 'mine', "the contact's status")
  expect(theirs.key).toMatchObject({ remoteJid: STATUS, participant: expect.stringMatching(/@lid$/) })
  // The receipt for a status is the same as for a message.
  await rui.sock.readMessages([seen.key])
  const receipts = () => ana.all('message-receipt.update').flat()
  const isSeen = ({ key, receipt }: ReturnType<typeof receipts>[number]) =>
    key.id === sent.key.id && receipt.userJid === rui.lid && receipt.readTimestamp
  await until(() => receipts().some(isSeen), 'the receipt')
})

it('stanzas take as long as the latency says, and keep their order', async () => {
  await simulator.misbehave({ kind: 'latency', ms: 150 })
  const begun = Date.now()
  await ana.sock.fetchBlocklist()
  expect(Date.now() - begun).toBeGreaterThanOrEqual(299)
  const texts = ['one', 'two', 'three']
  for (const text of texts) await simulator.writeAs({ from: CONTACT, to: ANA, text })
  await ana.received(({ message }) => message?.conversation === 'three', 'the last text')
  const received = ana.all('messages.upsert').flatMap(({ messages }) => messages.map(one => one.message?.conversation))
  expect(received.filter(text => texts.includes(text ?? ''))).toEqual(texts)
  await simulator.misbehave({ kind: 'latency', ms: 0 })
})
