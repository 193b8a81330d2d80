import { proto } from 'baileys'
import { expect, test } from 'vitest'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const CONTACT = '5511987654321'
const GROUP = '120363000000000777@g.us'

test("a text to the instance is one event, with the sender's number, push name and WhatsApp's ID", async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  const sent = await harness.network.writeAs({ from: CONTACT, to: phone, text: 'hello', name: 'Ana' })
  const [event] = await until('the event', async () => {
    const events = await harness.received(id)
    return events.length > 0 && events
  })
  expect(event).toEqual({
    id: sent.id,
    from: CONTACT,
    type: 'text',
    text: 'hello',
    name: 'Ana',
    messageId: expect.stringMatching(/^msg_/),
    chat: CONTACT,
    phone: CONTACT,
    lid: expect.stringMatching(/^\d+@lid$/),
    username: null,
  })
})

test('a text of 8 MB is stored whole; its event carries the beginning, marked as truncated', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  const text = `${'x'.repeat(65_535)}👍${'y'.repeat(8_000_000)}`
  await harness.network.writeAs({ from: CONTACT, to: phone, text })
  const [event] = await until('the event', async () => {
    const events = await harness.received(id)
    return events.length > 0 && events
  })
  expect(event?.['text'] === 'x'.repeat(65_535)).toBe(true)
  expect(event?.['truncated']).toBe(true)
  const stored = await harness.store.messages.findIncoming(id, String(event?.['messageId']))
  expect(stored?.text === text).toBe(true)
})

test("a text in a group names the group and the sender's number", async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  await harness.network.joinGroup(GROUP, [CONTACT, phone])
  for (const text of ['one', 'two']) await harness.network.writeAs({ from: CONTACT, to: phone, text, group: GROUP })
  const events = await until('both events', async () => {
    const all = await harness.received(id)
    return all.length === 2 && all
  })
  expect(events).toMatchObject([
    { from: CONTACT, group: GROUP, text: 'one' },
    { from: CONTACT, group: GROUP, text: 'two' },
  ])
})

test('messages that WhatsApp kept while the instance was offline are events, each once, in order', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  await harness.stop(connection)
  const texts = Array.from({ length: 40 }, (_, index) => `kept ${index}`)
  for (const text of texts) await harness.network.writeAs({ from: CONTACT, to: phone, text })
  await harness.connect(id)
  const events = await until('all events', async () => {
    const all = await harness.received(id)
    return all.length >= texts.length && all
  })
  expect(events.map(({ text }) => text)).toEqual(texts)
})

test('a reply to a sent message is an event', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  await harness.accept(id, '15005550005', 'say it again')
  const [event] = await until('the answer', async () => {
    const all = await harness.received(id)
    return all.length > 0 && all
  })
  expect(event).toMatchObject({ from: '15005550005', text: 'say it again' })
})

test('a message is recorded before it is acknowledged: while the store refuses, WhatsApp keeps it', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  await harness.stop(connection)
  const { events } = harness.store
  const refusing = { ...harness.store, events: Object.assign(Object.create(events), { storeIncoming: refuse }) }
  const second = await harness.connect(id, { store: refusing })
  await harness.reaches(id, 'connected')
  await harness.network.writeAs({ from: CONTACT, to: phone, text: 'held' })
  await until('the refusal', () => harness.log.some(line => line.includes('not now')))
  await harness.stop(second)
  const before = harness.log.length
  await harness.connect(id)
  await until('the event', async () => (await harness.received(id)).length === 1)
  // Its key was used up the first time: the content came from the journal, not from the sender a second time.
  expect(harness.log.slice(before).join()).not.toContain('failed to decrypt')
})

async function refuse(): Promise<never> {
  throw new Error('not now')
}

test('two linked clients write to each other', async () => {
  await using harness = await WhatsappHarness.open()
  const a = await harness.link()
  const b = await harness.link()
  const { id: there } = await harness.accept(a.id, b.phone, 'ping')
  await until('it to arrive', async () => (await harness.received(b.id)).some(({ text }) => text === 'ping'))
  await harness.accept(b.id, a.phone, 'pong')
  await until('the answer', async () => (await harness.received(a.id)).some(({ text }) => text === 'pong'))
  await harness.becomes(a.id, there, 'read')
  expect(await harness.eventsOf(a.id, there)).toEqual(['message.sent', 'message.delivered', 'message.read'])
})

test('any content from a contact is an event of its type, with its caption or reaction; protocol messages cause no such event', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  const other = await harness.link()
  const key = { remoteJid: `${phone}@s.whatsapp.net`, fromMe: true, id: 'ABC' }
  const contents: proto.IMessage[] = [
    { imageMessage: { caption: 'a caption' } },
    { videoMessage: {} },
    { audioMessage: {} },
    { documentWithCaptionMessage: { message: { documentMessage: { caption: 'the contract' } } } },
    { stickerMessage: {} },
    { locationMessage: { degreesLatitude: -23.5, degreesLongitude: -46.6 } },
    { contactMessage: { displayName: 'Ana', vcard: 'BEGIN:VCARD' } },
    { reactionMessage: { key, text: '👍' } },
    { protocolMessage: { key, type: proto.Message.ProtocolMessage.Type.REVOKE } },
    { pollCreationMessageV3: { name: 'Lunch?', options: [{ optionName: 'yes' }] } },
    { eventMessage: { name: 'a meeting' } },
    { conversation: 'the last' },
  ]
  await harness.stop(other.connection)
  const lease = await harness.lease(other.id)
  for (const content of contents) {
    const message = await harness.accept(other.id, phone, 'another program sends more than texts')
    const prepared = { address: `${phone}@s.whatsapp.net`, content: proto.Message.encode(content).finish() }
    await harness.store.messages.recordPrepared(lease, message.id, prepared)
  }
  await harness.connect(other.id)
  await until('the last', async () => (await harness.received(id)).some(({ text }) => text === 'the last'))
  const told = (await harness.received(id)).map(({ type, text }) => (text === undefined ? type : `${type}: ${text}`))
  expect(told).toEqual([
    'image: a caption',
    'video',
    'audio',
    'document: the contract',
    'sticker',
    'location',
    'contact',
    'reaction: 👍',
    'poll',
    'other: a meeting',
    'text: the last',
  ])
})

test('two linked clients that write first at the same time decrypt each other immediately', async () => {
  await using harness = await WhatsappHarness.open()
  const [a, b] = await Promise.all([harness.link(), harness.link()])
  const texts = ['one', 'two', 'three', 'four', 'five']
  const sent: [string, string][] = []
  for (const text of texts) {
    const [there, back] = await Promise.all([harness.accept(a.id, b.phone, text), harness.accept(b.id, a.phone, text)])
    sent.push([a.id, there.id], [b.id, back.id])
  }
  for (const [id, message] of sent) {
    await harness.becomes(id, message, 'read')
    expect(await harness.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  }
  for (const { id } of [a, b]) {
    await until('all texts', async () => (await harness.receivedIds(id)).length >= texts.length)
    expect((await harness.received(id)).map(({ text }) => text).sort()).toEqual([...texts].sort())
  }
  expect(harness.log.join()).not.toContain('failed to decrypt')
})
