import { expect, it } from 'vitest'
import { until } from './wait.ts'
import { jid, link, startSimulator, statuses } from './world.ts'

const CONTACT = '5511999990001'

it('a client with the default options of Baileys links, gets an answer to every query, writes and receives', async () => {
  const simulator = await startSimulator({ claimedPreKeys: 0 })
  const client = await link(simulator, 'a', {
    fireInitQueries: true,
    markOnlineOnConnect: true,
    emitOwnEvents: true,
    shouldSyncHistoryMessage: () => true,
    defaultQueryTimeoutMs: 5_000,
  })
  expect(await client.sock.fetchBlocklist()).toEqual([])
  expect(await client.sock.fetchPrivacySettings(true)).toMatchObject({ readreceipts: 'all' })
  expect(await client.sock.profilePictureUrl(jid(CONTACT))).toBe(undefined)
  expect(await client.sock.groupFetchAllParticipating()).toEqual({})
  const id = await client.send(jid(CONTACT), 'hello')
  await until(() => client.seen.acks.some(ack => ack.id === id))
  await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'answer' })
  const received = await until(() => client.find('answer'))
  await client.sock.readMessages([received.key])
  const second = await client.send(jid(CONTACT), 'second')
  await until(() => statuses(client, second).includes('read'))
  expect(client.seen.closes).toEqual([515])
})
