import { expect, it } from 'vitest'
import { until } from './wait.ts'
import { startClient, startSimulator } from './world.ts'

const CONTACT = '5511999990001'

it('a newly linked client gets the settings key and the chats, and its settings are kept', async () => {
  const simulator = await startSimulator({ syncsAfterLinking: true })
  const { phone } = await simulator.openAccount('a')
  const { id } = await simulator.writeAs({ from: CONTACT, to: phone, text: 'before linking', name: 'Ana' })
  const client = startClient(simulator.url, undefined, { shouldSyncHistoryMessage: () => true })
  const histories: string[] = []
  client.sock.ev.on('messaging-history.set', () => undefined)
  await simulator.scanQr(await until(() => client.seen.qrs[0], 'a QR code'), 'a', 'Bia')
  await until(() => client.seen.closes.includes(515))
  client.sock.ev.on('messaging-history.set', ({ messages }) => {
    for (const { key } of messages) histories.push(key.id!)
  })
  await until(() => histories.length > 0, 'the history')
  expect(histories).toEqual([id])
  await until(() => client.state.creds.accountSyncCounter > 0, 'the end of the sync')
  expect(client.state.creds.me?.name).toBe('Bia')
  const lid = await until(() => client.state.creds.me?.lid)
  await client.sock.chatModify({ pin: true }, lid)
  await client.sock.chatModify({ mute: 1 }, lid)
  const versions = await client.sock.authState.keys.get('app-state-sync-version', ['regular_low', 'regular_high'])
  expect(versions).toMatchObject({ regular_low: { version: 1 }, regular_high: { version: 1 } })
})
