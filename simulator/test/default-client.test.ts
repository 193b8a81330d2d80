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
    defaultQueryTimeoutMs: 60_000,
  })
  expect(await client.sock.fetchBlocklist()).toEqual([])
  expect(await client.sock.fetchPrivacySettings(true)).toMatchObject({ readreceipts: 'all' })
  await expect(client.sock.profilePictureUrl(jid(CONTACT))).rejects.toThrow('item-not-found')
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

it('a query that the simulator does not support is refused, and logged once with its content', async () => {
  const logged: string[] = []
  const simulator = await startSimulator({}, logged)
  const client = await link(simulator, 'a')
  const content = [{ tag: 'unheard', attrs: { of: 'it' }, content: Buffer.from('secret') }]
  const ask = () =>
    client.sock.query({ tag: 'iq', attrs: { type: 'set', xmlns: 'w:unknown', to: '@s.whatsapp.net' }, content })
  await expect(ask()).rejects.toThrow('bad-request')
  await expect(ask()).rejects.toThrow('bad-request')
  expect(logged).toHaveLength(1)
  expect(logged[0]).toMatch(/<iq .*xmlns="w:unknown".*><unheard of="it">6 bytes<\/unheard><\/iq>$/)
  const mex = client.sock.newsletterUnfollow('120363000000000001@newsletter')
  await expect(mex).rejects.toThrow('Bad Request')
})
