import { expect, test } from 'vitest'
import { newMessageId } from '../../../src/domain/ids.ts'
import { messageFailure } from '../../../src/domain/message.ts'
import { NO_PACE } from '../../../src/domain/pace.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const CONTACT = '5511987654321'
const OTHER = '5511987654322'
/** Neither delivers nor reads. */
const SILENT = '15005550003'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const GROUP = '120363000000000777@g.us'

test('a text to a number is sent, delivered and read, in this order, and is on the phone once', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  const { id: message, whatsappId } = await harness.accept(id, CONTACT, 'Olá ✓\nsecond line')
  await harness.becomes(id, message, 'read')
  expect(await harness.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  expect(await harness.network.inbox(CONTACT)).toMatchObject([
    { id: whatsappId, from: phone, text: 'Olá ✓\nsecond line', copies: 1 },
  ])
})

test('a text to a group is decrypted by its members, and is read when the first of them has read it', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  for (const text of ['first', 'second']) {
    const { id: message } = await harness.accept(id, GROUP, text)
    await harness.becomes(id, message, 'read')
    expect(await harness.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  }
})

test('a group ID of any valid length is accepted and delivered', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  const groups = ['0@g.us', '1-1@g.us', `${'1'.repeat(59)}@g.us`, `${'12'.repeat(14)}-${'34'.repeat(15)}@g.us`]
  const accepted = await Promise.all(groups.map(group => harness.accept(id, group, 'hello')))
  for (const { id: message } of accepted) await harness.becomes(id, message, 'read')
})

test.each([
  ['15005550001', 'failed', 'recipient_not_on_whatsapp', ['message.failed']],
  ['15005550002', 'delivered', null, ['message.sent', 'message.delivered']],
  ['15005550003', 'sent', null, ['message.sent']],
  ['15005550004', 'failed', 'rejected_by_whatsapp', ['message.failed']],
  ['15005550006', 'read', null, ['message.sent', 'message.delivered', 'message.read']],
  ['120363000000000001@g.us', 'failed', 'not_a_group_member', ['message.failed']],
] as const)('%s ends %s', async (to, state, code, events) => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  const { id: message } = await harness.accept(id, to, 'x')
  const { failure } = await harness.becomes(id, message, state)
  expect(failure?.code ?? null).toBe(code)
  if (to === '15005550004') expect(failure?.message).toContain('421')
  expect(await harness.eventsOf(id, message)).toEqual(events)
})

test("if a message's content cannot be stored, the socket ends and the message is sent over the next one", async () => {
  await using harness = await WhatsappHarness.open()
  let failures = 1
  const { store } = harness
  const messages = new Proxy(store.messages, {
    get: (target, name) => {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'recordPrepared' || failures === 0) return value.bind(target)
      failures -= 1
      return () => Promise.reject(new Error('The write went wrong in a way that nobody foresaw.'))
    },
  })
  const { connections, events, credentials, numbers, paces, directory, downloads, hints } = store
  const { id } = await harness.link({
    store: { connections, messages, events, credentials, numbers, paces, directory, downloads, hints },
  })
  const { id: message } = await harness.accept(id, CONTACT, 'again')
  await harness.becomes(id, message, 'read')
  expect(failures).toBe(0)
})

test('a text that is cancelled at the moment at which it is recorded as prepared is never written, and the link stays', async () => {
  await using harness = await WhatsappHarness.open()
  const { store, line, network } = harness
  const cancelled: string[] = []
  const messages = new Proxy(store.messages, {
    get: (target, name) => {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'recordPrepared') return value.bind(target)
      return async (...[lease, id, prepared]: Parameters<typeof target.recordPrepared>) => {
        const reference = references.get(id)
        if (reference) {
          // First, because the test goes on as soon as the failure is recorded.
          cancelled.push(prepared.address)
          await target.recordFailure(lease, reference, messageFailure('cancelled'), Date.now())
        }
        return target.recordPrepared(lease, id, prepared)
      }
    },
  })
  const references = new Map<string, { id: string; whatsappId: string }>()
  const { connections, events, credentials, numbers, paces, directory, downloads, hints } = store
  const { id, phone } = await harness.link({
    store: { connections, messages, events, credentials, numbers, paces, directory, downloads, hints },
  })
  const lid = `${999_999_999_999_999 - Number(CONTACT)}@lid`
  const sockets = line.opened
  // The second round has nothing left to query.
  for (const text of ['goes nowhere', 'goes out', 'goes nowhere']) {
    for (const to of [lid, GROUP, phone, OTHER]) {
      const message = await harness.accept(id, to, text)
      if (text === 'goes nowhere') references.set(message.id, message)
      await harness.becomes(id, message.id, text === 'goes out' ? 'sent' : 'failed')
    }
  }
  for (const number of [CONTACT, phone, OTHER])
    expect((await network.inbox(number)).map(({ text }) => text)).toEqual(['goes out'])
  const addresses = [lid, GROUP, `${phone}@s.whatsapp.net`, `${OTHER}@s.whatsapp.net`]
  expect(cancelled).toEqual([...addresses, ...addresses])
  expect(line.opened).toBe(sockets)
})

test('messages to one recipient arrive in the order accepted, even from a long queue', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  const texts = Array.from({ length: 120 }, (_, index) => `letter ${index}`)
  for (const text of texts) await harness.accept(id, CONTACT, text)
  const inbox = await until('all of them', async () => {
    const received = await harness.network.inbox(CONTACT)
    return received.length === texts.length && received
  })
  expect(inbox.map(({ text }) => text)).toEqual(texts)
})

test('a number is looked up once, and its devices and keys are asked for once, across a restart', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  const { id: first } = await harness.accept(id, CONTACT, 'one')
  await harness.becomes(id, first, 'read')
  const looked = await harness.store.numbers.find(id, CONTACT, Date.now())
  expect(looked?.address).toMatch(/@(s\.whatsapp\.net|lid)$/)
  await harness.stop(connection)
  await harness.connect(id)
  const { id: second } = await harness.accept(id, CONTACT, 'two')
  await harness.becomes(id, second, 'read')
  expect((await harness.network.inbox(CONTACT)).map(({ text }) => text)).toEqual(['one', 'two'])
})

test('a message that became too old and was never written to WhatsApp fails as expired', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  await harness.stop(connection)
  const { id: message } = await harness.accept(id, CONTACT, 'too late')
  harness.line.hold()
  await harness.connect(id, { settings: { messageTtlMs: 300 } })
  const { failure } = await harness.becomes(id, message, 'failed')
  expect(failure?.code).toBe('expired')
})

test('a message expires without a connection, although many texts to strangers before it wait for the pace', async () => {
  await using harness = await WhatsappHarness.open()
  const { store, network, line } = harness
  const { id, phone, connection } = await harness.link()
  await network.writeAs({ from: OTHER, to: phone, text: 'hello' })
  await until('the message', async () => (await harness.receivedIds(id)).length === 1)
  await harness.stop(connection)
  await store.paces.set(id, { ...NO_PACE, newRecipientsPerDay: 1 }, Date.now())
  // The second one has to wait until a midnight that is at least an hour away.
  const lease = await harness.lease(id)
  const later = Date.now() + HOUR_MS
  for (const name of ['one', 'two']) await store.paces.take(lease, newMessageId(later), name, later)
  const strangers = Array.from({ length: 300 }, (_, index) => `5511976540${String(index).padStart(3, '0')}`)
  await Promise.all(strangers.map(to => harness.accept(id, to, 'waits')))
  const { id: message } = await harness.accept(id, OTHER, 'too late')
  line.hold()
  await harness.connect(id, { settings: { messageTtlMs: 1_000 } })
  const { failure } = await harness.becomes(id, message, 'failed')
  expect(failure?.code).toBe('expired')
  const { data: queued } = await store.messages.list(id, { limit: 400 }, { state: 'queued' })
  expect(queued).toHaveLength(strangers.length)
})

test('a message that WhatsApp never acknowledged fails as unconfirmed', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  const { id: known } = await harness.accept(id, CONTACT, 'hello')
  await harness.becomes(id, known, 'read')
  await harness.stop(connection)
  await harness.connect(id, { settings: { messageTtlMs: 10_000 } })
  await harness.reaches(id, 'connected')
  harness.line.hold()
  const { id: message } = await harness.accept(id, CONTACT, 'did it arrive?')
  await until('it to be on the phone', async () => (await harness.network.inbox(CONTACT)).length === 2)
  harness.line.cut()
  const { failure } = await harness.becomes(id, message, 'failed')
  expect(failure?.code).toBe('unconfirmed')
})

test('a sent message fails when WhatsApp refuses it afterwards', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link({ settings: { messageTtlMs: DAY_MS, ackTimeoutMs: 800 } })
  // The first attempt is refused, and the refusal arrives only after the second one was acknowledged.
  const when = { stanza: 'ack', direction: 'out', attrs: { class: 'message' }, times: 1 } as const
  for (const then of [{ error: '500' }, 'hold'] as const) {
    await harness.network.misbehave({ kind: 'rule', rule: { when, do: then } })
  }
  const { id: message } = await harness.accept(id, SILENT, 'x')
  await harness.becomes(id, message, 'sent')
  await harness.network.misbehave({ kind: 'release' })
  const { failure } = await harness.becomes(id, message, 'failed')
  expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining('500') })
  expect(await harness.eventsOf(id, message)).toEqual(['message.sent', 'message.failed'])
})

test('a sent message fails neither because of its age nor because of a logout', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  const { id: message } = await harness.accept(id, SILENT, 'x')
  await harness.becomes(id, message, 'sent')
  await harness.stop(connection)
  const { id: late } = await harness.accept(id, SILENT, 'by this one the age is seen to count')
  harness.line.hold()
  await harness.connect(id, { settings: { messageTtlMs: 1_500 } })
  await harness.becomes(id, late, 'failed')
  harness.line.release()
  await harness.reaches(id, 'connected')
  await harness.store.connections.requestLogout(id)
  await harness.reaches(id, 'logged_out')
  await until('the goal to become idle', async () => (await harness.store.connections.find(id))?.goal === 'idle')
  expect(await harness.store.messages.find(id, message)).toMatchObject({ state: 'sent', failure: null })
  expect(await harness.eventsOf(id, message)).toEqual(['message.sent'])
})
