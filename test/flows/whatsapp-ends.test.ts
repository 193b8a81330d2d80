import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { onThisMachine } from '../deadlines.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const CONTACT = '5511987654321'

test('a socket cut in the middle of sending loses nothing and shows nothing twice', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  const numbers = Array.from({ length: 20 }, (_, index) => `55119000000${String(index).padStart(2, '0')}`)
  const accepted = await Promise.all(numbers.map(to => stage.accept(id, to, `to ${to}`)))
  const countShown = async () => (await Promise.all(numbers.map(to => stage.network.inbox(to)))).flat().length
  for (let cuts = 0, before = 0; cuts < 3; cuts += 1) {
    await until('a socket', () => stage.line.sockets > 0)
    before = await until('another message to be shown', async () => {
      const shown = await countShown()
      return (shown > before || shown === numbers.length) && shown
    })
    stage.line.cut()
  }
  for (const { id: message } of accepted) await stage.becomes(id, message, 'read')
  for (const [index, to] of numbers.entries()) {
    const inbox = await stage.network.inbox(to)
    expect(inbox.map(message => message.id)).toEqual([accepted[index]?.whatsappId])
  }
})

test('a message whose acknowledgement was lost is sent again under the same ID with the same content', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  const { id: first } = await stage.accept(id, CONTACT, 'first')
  await stage.becomes(id, first, 'read')
  stage.line.hold()
  const { id: message, whatsappId } = await stage.accept(id, CONTACT, 'second')
  await until('it to be on the phone', async () => (await stage.network.inbox(CONTACT)).length === 2)
  stage.line.cut()
  stage.line.release()
  await stage.becomes(id, message, 'read')
  const [, second] = await stage.network.inbox(CONTACT)
  expect(second).toMatchObject({ id: whatsappId, text: 'second' })
  expect(await stage.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
})

test('logged out from the phone: credentials are erased, the queue fails, nothing is accepted', async () => {
  await using stage = await Stage.open()
  const { id, phone, connection } = await stage.link()
  await stage.stop(connection)
  const { id: message } = await stage.accept(id, CONTACT, 'never sent')
  await stage.network.unlink(phone)
  await stage.connect(id, { scan: false })
  const { reason } = await stage.reaches(id, 'logged_out')
  expect(reason).toContain('from the phone')
  expect((await stage.becomes(id, message, 'failed')).failure?.code).toBe('instance_logged_out')
  await until('the goal to rest', async () => (await stage.store.connections.find(id))?.goal === 'idle')
  expect((await stage.store.credentials.get(id, 'creds', ['creds'])).size).toBe(0)
  expect((await stage.store.connections.find(id))?.phone).toBeNull()
})

test('logged out by us: the phone lists the device no more, and it can be linked again', async () => {
  await using stage = await Stage.open()
  const { id, phone } = await stage.link()
  await stage.store.connections.requestLogout(id)
  await stage.reaches(id, 'logged_out')
  await until('the phone to notice', async () => {
    const account = (await stage.network.listAccounts()).find(one => one.phone === phone)
    return account?.linked === false
  })
  await stage.store.connections.requestConnect(id, null)
  await stage.reaches(id, 'connected')
})

test('deleted: WhatsApp is logged out from memory, and a new owner fails the queue', async () => {
  await using stage = await Stage.open()
  let lost = false
  const onLeaseLost = () => {
    lost = true
  }
  const { id, phone, connection } = await stage.link({ onLeaseLost })
  stage.line.hold()
  const { id: message } = await stage.accept(id, CONTACT, 'never answered')
  await stage.store.instances.delete(id, Date.now())
  await connection.stop({ logOut: true })
  stage.line.release()
  await until('the phone to notice', async () => {
    const account = (await stage.network.listAccounts()).find(one => one.phone === phone)
    return account?.linked === false
  })
  await stage.connect(id)
  await until('the queue to be empty', async () => (await stage.store.messages.listQueued(id, 1)).length === 0)
  const events = await stage.store.messages.listEvents(id, message)
  expect(events.map(({ kind }) => kind)).toEqual(['message.failed'])
  expect(lost).toBeTypeOf('boolean')
})

test('a connection that was cut reconnects by itself, and says so meanwhile', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  stage.line.cut()
  expect((await stage.reaches(id, 'reconnecting')).reason).toMatch(/cut|Connecting/)
  await stage.reaches(id, 'connected')
})

test('a stop takes less than 3 s, even if WhatsApp is silent', async () => {
  await using stage = await Stage.open()
  const { id, connection } = await stage.link()
  stage.line.hold()
  await stage.accept(id, CONTACT, 'in flight')
  const startedAt = performance.now()
  await stage.stop(connection)
  expect(performance.now() - startedAt).toBeLessThan(onThisMachine(3_000))
  expect(await stage.store.connections.find(id)).toMatchObject({ state: 'reconnecting' })
})

test('no key, text or number of a contact is in any line of the log, at any level', async () => {
  await using stage = await Stage.open()
  const { id, phone } = await stage.link()
  const { id: message } = await stage.accept(id, CONTACT, 'a secret text')
  await stage.network.writeAs({ from: CONTACT, to: phone, text: 'another secret' })
  await stage.becomes(id, message, 'read')
  stage.line.cut()
  await stage.reaches(id, 'reconnecting')
  await stage.reaches(id, 'connected')
  expect(stage.log.length).toBeGreaterThan(5)
  const all = stage.log.join('\n')
  for (const secret of ['secret', CONTACT, phone, 'private', 'Buffer']) expect(all).not.toContain(secret)
})

test.each([401, 503])(
  'a server that answers the WebSocket with HTTP %i is tried again, and logs nobody out',
  async status => {
    await using stage = await Stage.open()
    const { id, connection } = await stage.link()
    await stage.stop(connection)
    let attempts = 0
    const server = createServer().on('upgrade', (_request, socket) => {
      attempts += 1
      socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\n\r\n`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = server.address() as AddressInfo
      await stage.connect(id, { network: { kind: 'simulated', url: `ws://127.0.0.1:${port}/ws/chat` } })
      await until('it to say why', async () => {
        const { state, reason } = (await stage.store.connections.find(id)) ?? {}
        return state === 'reconnecting' && reason?.startsWith('WhatsApp is not available right now.')
      })
      await stage.store.connections.requestConnect(id, null)
      await until('another attempt', () => attempts > 1)
    } finally {
      server.close()
    }
  },
)
