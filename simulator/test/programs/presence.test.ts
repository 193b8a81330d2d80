import type { Simulator } from '@pombal/simulator'
import { beforeEach, expect, it } from 'vitest'
import { type Program, startNetwork, startProgram } from '../program.ts'
import { until } from '../wait.ts'

const [ANA, RUI] = ['5511900000001', '5511900000002'] as const
const CONTACT = '5511999990001'
const jid = (number: string) => `${number}@s.whatsapp.net`

let simulator: Simulator
let ana: Program
let rui: Program

beforeEach(async () => {
  simulator = await startNetwork()
  ana = await startProgram(simulator, ANA, 'Ana')
  rui = await startProgram(simulator, RUI, 'Rui')
  for (const program of [ana, rui]) await until(() => program.creds.me?.name, 'the name')
})

/** What the program has learned of this chat, in order. */
const learned = (program: Program, chat: string) =>
  program
    .all('presence.update')
    .filter(({ id }) => id === chat)
    .flatMap(({ presences }) => Object.values(presences).map(({ lastKnownPresence }) => lastKnownPresence))

it('a program that has subscribed learns when the other is online, and since when it is offline', async () => {
  await until(async () => (await simulator.presence(RUI)).available, 'rui to be online by default')
  await ana.sock.presenceSubscribe(rui.jid)
  await until(() => learned(ana, rui.jid).at(-1) === 'available', 'available')
  await rui.sock.sendPresenceUpdate('unavailable')
  await until(() => learned(ana, rui.jid).at(-1) === 'unavailable', 'unavailable')
  const last = ana.all('presence.update').at(-1)!.presences[rui.jid]!
  expect(last.lastSeen).toBeGreaterThan(Date.now() / 1000 - 60)
  await rui.sock.sendPresenceUpdate('available')
  await until(() => learned(ana, rui.jid).at(-1) === 'available', 'available again')
  await rui.sock.end(undefined)
  await until(() => learned(ana, rui.jid).at(-1) === 'unavailable', 'the end of the connection')
  expect(rui.all('presence.update')).toEqual([])
})

it('typing and recording reach the other program, and the phone of a contact', async () => {
  await ana.sock.presenceSubscribe(rui.jid)
  await until(() => learned(ana, rui.jid).length > 0, 'the presence')
  for (const state of ['composing', 'recording'] as const) {
    await rui.sock.sendPresenceUpdate(state, ana.jid)
    await until(() => learned(ana, rui.jid).at(-1) === state, state)
  }
  await rui.sock.sendPresenceUpdate('paused', ana.lid)
  await until(() => learned(ana, rui.jid).at(-1) === 'available', 'paused')
  await ana.sock.sendPresenceUpdate('composing', jid(CONTACT))
  await until(async () => (await simulator.presence(CONTACT)).typing.length > 0, 'the typing')
  expect(await simulator.presence(CONTACT)).toEqual({ available: false, typing: [{ from: ANA, state: 'composing' }] })
  const { id } = await ana.sock.groupCreate('Lunch', [rui.jid])
  await rui.sock.sendPresenceUpdate('composing', id)
  await until(() => learned(ana, id).at(-1) === 'composing', 'typing in the group')
})

it('contacts are online and type, for a program that has subscribed to them', async () => {
  await ana.sock.sendPresenceUpdate('unavailable')
  await until(async () => !(await simulator.presence(ANA)).available, 'ana to be offline')
  await simulator.setPresence({ from: CONTACT, to: ANA, available: true })
  await simulator.typeAs({ from: CONTACT, to: ANA, state: 'composing' })
  await ana.sock.presenceSubscribe(jid(CONTACT))
  await until(() => learned(ana, jid(CONTACT)).length > 0, 'the presence')
  await simulator.typeAs({ from: CONTACT, to: ANA, state: 'recording' })
  await simulator.setPresence({ from: CONTACT, to: ANA, available: false, lastSeen: 1_700_000_000 })
  await until(() => learned(ana, jid(CONTACT)).length === 3, 'all')
  expect(learned(ana, jid(CONTACT))).toEqual(['available', 'recording', 'unavailable'])
  expect(ana.all('presence.update').at(-1)?.presences[jid(CONTACT)]?.lastSeen).toBe(1_700_000_000)
})
