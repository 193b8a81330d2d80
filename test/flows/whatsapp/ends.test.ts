import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const CONTACT = '5511987654321'

test('a socket cut in the middle of sending loses nothing and shows nothing twice', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  const numbers = Array.from({ length: 20 }, (_, index) => `55119000000${String(index).padStart(2, '0')}`)
  const accepted = await Promise.all(numbers.map(to => harness.accept(id, to, `to ${to}`)))
  const countShown = async () => (await Promise.all(numbers.map(to => harness.network.inbox(to)))).flat().length
  for (let cuts = 0, before = 0; cuts < 3; cuts += 1) {
    await until('a socket', () => harness.line.sockets > 0)
    before = await until('another message to be shown', async () => {
      const shown = await countShown()
      return (shown > before || shown === numbers.length) && shown
    })
    harness.line.cut()
  }
  for (const { id: message } of accepted) await harness.becomes(id, message, 'read')
  for (const [index, to] of numbers.entries()) {
    const inbox = await harness.network.inbox(to)
    expect(inbox.map(message => message.id)).toEqual([accepted[index]?.whatsappId])
  }
})

test('a message whose acknowledgement was lost is sent again under the same ID with the same content', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  const { id: first } = await harness.accept(id, CONTACT, 'first')
  await harness.becomes(id, first, 'read')
  harness.line.hold()
  const { id: message, whatsappId } = await harness.accept(id, CONTACT, 'second')
  await until('it to be on the phone', async () => (await harness.network.inbox(CONTACT)).length === 2)
  harness.line.cut()
  harness.line.release()
  await harness.becomes(id, message, 'read')
  const [, second] = await harness.network.inbox(CONTACT)
  expect(second).toMatchObject({ id: whatsappId, text: 'second' })
  expect(await harness.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
})

test('after a cut during an upload of pre-keys, the first messages of contacts can be decrypted', async () => {
  // So few that Baileys uploads 5 more at each login.
  await using harness = await WhatsappHarness.open({ claimedPreKeys: 5 })
  const upload = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'encrypt', type: 'set' }, times: 1 } as const
  await harness.network.misbehave({ kind: 'rule', rule: { when: upload, do: 'cut' } })
  const { id, phone } = await harness.link()
  // Baileys repeats an upload after 1, 3 and 7 s, even if its socket has ended.
  const isOver = () => harness.log.some(line => line.includes('Failed to check/upload pre-keys'))
  await until('the end of the first upload', isOver)
  const contacts = ['5511987650001', '5511987650002', '5511987650003']
  for (const from of contacts) await harness.network.writeAs({ from, to: phone, text: `from ${from}` })
  await until('the events', async () => (await harness.received(id)).length === contacts.length)
  const onPhone = await harness.network.inbox(phone)
  expect(onPhone.map(({ from, askedFor }) => ({ from, askedFor }))).toEqual(contacts.map(from => ({ from })))
})

test('a logout on the phone erases the credentials and fails the queue, and nothing is accepted', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  await harness.stop(connection)
  const { id: message } = await harness.accept(id, CONTACT, 'never sent')
  await harness.network.unlink(phone)
  await harness.connect(id, { scan: false })
  const { reason } = await harness.reaches(id, 'logged_out')
  expect(reason).toContain('from the phone')
  expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('instance_logged_out')
  await until('the goal to become idle', async () => (await harness.store.connections.find(id))?.goal === 'idle')
  expect((await harness.store.credentials.get(id, 'creds', ['creds'])).size).toBe(0)
  expect((await harness.store.connections.find(id))?.phone).toBeNull()
})

test('a logout by Pombal removes the device from the phone, and the instance can be linked again', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  await harness.store.connections.requestLogout(id)
  await harness.reaches(id, 'logged_out')
  await until('the phone to notice', async () => {
    const account = (await harness.network.listAccounts()).find(one => one.phone === phone)
    return account?.linked === false
  })
  await harness.store.connections.requestConnect(id, null)
  await harness.reaches(id, 'connected')
})

test('after a deletion the number is logged out with the credentials in memory, and a new owner fails the queue', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  harness.line.hold()
  const { id: message } = await harness.accept(id, CONTACT, 'never answered')
  await harness.store.instances.delete(id, Date.now())
  await connection.stop({ logOut: true })
  harness.line.release()
  await until('the phone to notice', async () => {
    const account = (await harness.network.listAccounts()).find(one => one.phone === phone)
    return account?.linked === false
  })
  await harness.connect(id)
  await until('the queue to be empty', async () => (await harness.store.messages.listQueued(id, 1)).length === 0)
  const events = await harness.store.messages.listEvents(id, message)
  expect(events.map(({ kind }) => kind)).toEqual(['message.failed'])
})

test('a connection that is cut reconnects automatically, and is reconnecting meanwhile', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  harness.line.cut()
  expect((await harness.reaches(id, 'reconnecting')).reason).toMatch(/cut|Connecting/)
  await harness.reaches(id, 'connected')
})

test('a stop does not wait for the end of a query, if WhatsApp is silent', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link({ settings: { messageTtlMs: 86_400_000, queryTimeoutMs: 600_000 } })
  harness.line.hold()
  await harness.accept(id, CONTACT, 'in flight')
  const startedAt = performance.now()
  await harness.stop(connection)
  expect(performance.now() - startedAt).toBeLessThan(60_000)
  expect(await harness.store.connections.find(id)).toMatchObject({ state: 'reconnecting' })
})

test("no log line contains a key, a text or a contact's number, at any level", async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  const { id: message } = await harness.accept(id, CONTACT, 'a secret text')
  await harness.network.writeAs({ from: CONTACT, to: phone, text: 'another secret' })
  await harness.becomes(id, message, 'read')
  harness.line.cut()
  await harness.reaches(id, 'reconnecting')
  await harness.reaches(id, 'connected')
  expect(harness.log.length).toBeGreaterThan(5)
  const all = harness.log.join('\n')
  for (const secret of ['secret', CONTACT, phone, 'private', 'Buffer']) expect(all).not.toContain(secret)
})

test('continual requests to connect do not keep the number from connecting', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  harness.line.cut()
  await harness.reaches(id, 'reconnecting')
  await until('the number to be connected again', async () => {
    await harness.store.connections.requestConnect(id, null)
    return (await harness.store.connections.find(id))?.state === 'connected'
  })
  const logins = harness.log.filter(line => line.includes('"cause":"logging_in"'))
  expect(logins.length).toBeLessThan(6)
})

test.each([401, 503])(
  'a server that answers the WebSocket with HTTP %i is tried again, and causes no logout',
  async status => {
    await using harness = await WhatsappHarness.open()
    const { id, connection } = await harness.link()
    await harness.stop(connection)
    let attempts = 0
    const server = createServer().on('upgrade', (_request, socket) => {
      attempts += 1
      socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\n\r\n`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = server.address() as AddressInfo
      await harness.connect(id, { network: { kind: 'simulated', url: `ws://127.0.0.1:${port}/ws/chat` } })
      await until('it to say why', async () => {
        const { state, reason } = (await harness.store.connections.find(id)) ?? {}
        return state === 'reconnecting' && reason?.startsWith('WhatsApp is not available right now.')
      })
      await harness.store.connections.requestConnect(id, null)
      await until('another attempt', () => attempts > 1)
    } finally {
      server.close()
    }
  },
)
