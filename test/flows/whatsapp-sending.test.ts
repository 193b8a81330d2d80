import { expect, test } from 'vitest'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const CONTACT = '5511987654321'
/** Neither delivers nor reads. */
const SILENT = '15005550003'
const DAY_MS = 86_400_000
const GROUP = '120363000000000777@g.us'

test('a text to a number is sent, delivered and read, in this order, and is on the phone once', async () => {
  await using stage = await Stage.open()
  const { id, phone } = await stage.link()
  const { id: message, whatsappId } = await stage.accept(id, CONTACT, 'Olá ✓\nsecond line')
  await stage.becomes(id, message, 'read')
  expect(await stage.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  expect(await stage.network.inbox(CONTACT)).toMatchObject([
    { id: whatsappId, from: phone, text: 'Olá ✓\nsecond line', copies: 1 },
  ])
})

test('a text to a group is decrypted by its members and read once the first of them has', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  for (const text of ['first', 'second']) {
    const { id: message } = await stage.accept(id, GROUP, text)
    await stage.becomes(id, message, 'read')
    expect(await stage.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  }
})

test('any group exists that a message may be for, however short or long its name', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  const groups = ['0@g.us', '1-1@g.us', `${'1'.repeat(59)}@g.us`, `${'12'.repeat(14)}-${'34'.repeat(15)}@g.us`]
  const accepted = await Promise.all(groups.map(group => stage.accept(id, group, 'hello')))
  for (const { id: message } of accepted) await stage.becomes(id, message, 'read')
})

test.each([
  ['15005550001', 'failed', 'recipient_not_on_whatsapp', ['message.failed']],
  ['15005550002', 'delivered', null, ['message.sent', 'message.delivered']],
  ['15005550003', 'sent', null, ['message.sent']],
  ['15005550004', 'failed', 'rejected_by_whatsapp', ['message.failed']],
  ['15005550006', 'read', null, ['message.sent', 'message.delivered', 'message.read']],
  ['120363000000000001@g.us', 'failed', 'not_a_group_member', ['message.failed']],
] as const)('%s ends %s', async (to, state, code, events) => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  const { id: message } = await stage.accept(id, to, 'x')
  const { failure } = await stage.becomes(id, message, state)
  expect(failure?.code ?? null).toBe(code)
  if (to === '15005550004') expect(failure?.message).toContain('421')
  expect(await stage.eventsOf(id, message)).toEqual(events)
})

test('a message whose content could not be stored ends its socket, and is sent over the next one', async () => {
  await using stage = await Stage.open()
  let failures = 1
  const { store } = stage
  const messages = new Proxy(store.messages, {
    get: (target, name) => {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'recordPrepared' || failures === 0) return value.bind(target)
      failures -= 1
      return () => Promise.reject(new Error('The write went wrong in a way that nobody foresaw.'))
    },
  })
  const { connections, events, credentials, numbers, hints } = store
  const { id } = await stage.link({ store: { connections, messages, events, credentials, numbers, hints } })
  const { id: message } = await stage.accept(id, CONTACT, 'again')
  await stage.becomes(id, message, 'read')
  expect(failures).toBe(0)
})

test('messages to one recipient arrive in the order accepted, however many wait', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  const texts = Array.from({ length: 120 }, (_, index) => `text ${index}`)
  for (const text of texts) await stage.accept(id, CONTACT, text)
  const inbox = await until('all of them', async () => {
    const received = await stage.network.inbox(CONTACT)
    return received.length === texts.length && received
  })
  expect(inbox.map(({ text }) => text)).toEqual(texts)
})

test('a number is looked up once, and its devices and keys are asked for once, across a restart', async () => {
  await using stage = await Stage.open()
  const { id, connection } = await stage.link()
  const { id: first } = await stage.accept(id, CONTACT, 'one')
  await stage.becomes(id, first, 'read')
  const looked = await stage.store.numbers.find(id, CONTACT, Date.now())
  expect(looked?.address).toMatch(/@(s\.whatsapp\.net|lid)$/)
  await stage.stop(connection)
  await stage.connect(id)
  const { id: second } = await stage.accept(id, CONTACT, 'two')
  await stage.becomes(id, second, 'read')
  expect((await stage.network.inbox(CONTACT)).map(({ text }) => text)).toEqual(['one', 'two'])
})

test('a message that waited too long fails: expired when it was never handed to WhatsApp', async () => {
  await using stage = await Stage.open()
  const { id, connection } = await stage.link()
  await stage.stop(connection)
  const { id: message } = await stage.accept(id, CONTACT, 'too late')
  stage.line.hold()
  await stage.connect(id, { settings: { messageTtlMs: 300 } })
  const { failure } = await stage.becomes(id, message, 'failed')
  expect(failure?.code).toBe('expired')
})

test('a message that WhatsApp never acknowledged fails as unconfirmed', async () => {
  await using stage = await Stage.open()
  const { id, connection } = await stage.link()
  const { id: known } = await stage.accept(id, CONTACT, 'hello')
  await stage.becomes(id, known, 'read')
  await stage.stop(connection)
  await stage.connect(id, { settings: { messageTtlMs: 2_000 } })
  await stage.reaches(id, 'connected')
  stage.line.hold()
  const { id: message } = await stage.accept(id, CONTACT, 'did it arrive?')
  await until('it to be on the phone', async () => (await stage.network.inbox(CONTACT)).length === 2)
  stage.line.cut()
  const { failure } = await stage.becomes(id, message, 'failed')
  expect(failure?.code).toBe('unconfirmed')
})

test('a sent message fails when WhatsApp refuses it afterwards', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link({ settings: { messageTtlMs: DAY_MS, ackTimeoutMs: 800 } })
  // The first attempt is refused, and the refusal arrives only after the second one was acknowledged.
  const when = { stanza: 'ack', direction: 'out', attrs: { class: 'message' }, times: 1 } as const
  for (const then of [{ error: '500' }, { delayMs: 4_000 }]) {
    await stage.network.misbehave({ kind: 'rule', rule: { when, do: then } })
  }
  const { id: message } = await stage.accept(id, SILENT, 'x')
  await stage.becomes(id, message, 'sent')
  const { failure } = await stage.becomes(id, message, 'failed')
  expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining('500') })
  expect(await stage.eventsOf(id, message)).toEqual(['message.sent', 'message.failed'])
})

test('a sent message fails neither by age nor by logout', async () => {
  await using stage = await Stage.open()
  const { id, connection } = await stage.link({ settings: { messageTtlMs: 1_500 } })
  const { id: message } = await stage.accept(id, SILENT, 'x')
  await stage.becomes(id, message, 'sent')
  await stage.stop(connection)
  const { id: late } = await stage.accept(id, SILENT, 'by this one the age is seen to count')
  stage.line.hold()
  await stage.connect(id, { settings: { messageTtlMs: 1_500 } })
  await stage.becomes(id, late, 'failed')
  stage.line.release()
  await stage.reaches(id, 'connected')
  await stage.store.connections.requestLogout(id)
  await stage.reaches(id, 'logged_out')
  await until('the goal to rest', async () => (await stage.store.connections.find(id))?.goal === 'idle')
  expect(await stage.store.messages.find(id, message)).toMatchObject({ state: 'sent', failure: null })
  expect(await stage.eventsOf(id, message)).toEqual(['message.sent'])
})
