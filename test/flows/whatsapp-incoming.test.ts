import { proto } from 'baileys'
import { expect, test } from 'vitest'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const CONTACT = '5511987654321'
const GROUP = '120363000000000777@g.us'

test('a text to the instance is one event, with the number, the push name and the id of WhatsApp', async () => {
  await using stage = await Stage.open()
  const { id, phone } = await stage.link()
  const sent = await stage.network.writeAs({ from: CONTACT, to: phone, text: 'hello', name: 'Ana' })
  const [event] = await until('the event', async () => {
    const events = await stage.received(id)
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

test('a text of 8 MB is stored whole; its event carries the beginning, and says so', async () => {
  await using stage = await Stage.open()
  const { id, phone } = await stage.link()
  const text = `${'x'.repeat(65_535)}👍${'y'.repeat(8_000_000)}`
  await stage.network.writeAs({ from: CONTACT, to: phone, text })
  const [event] = await until('the event', async () => {
    const events = await stage.received(id)
    return events.length > 0 && events
  })
  expect(event?.['text'] === 'x'.repeat(65_535)).toBe(true)
  expect(event?.['truncated']).toBe(true)
  const stored = await stage.store.messages.findIncoming(id, String(event?.['messageId']))
  expect(stored?.text === text).toBe(true)
})

test('a text in a group names the group and the number of who wrote it', async () => {
  await using stage = await Stage.open()
  const { id, phone } = await stage.link()
  await stage.network.joinGroup(GROUP, [CONTACT, phone])
  for (const text of ['one', 'two']) await stage.network.writeAs({ from: CONTACT, to: phone, text, group: GROUP })
  const events = await until('both events', async () => {
    const all = await stage.received(id)
    return all.length === 2 && all
  })
  expect(events).toMatchObject([
    { from: CONTACT, group: GROUP, text: 'one' },
    { from: CONTACT, group: GROUP, text: 'two' },
  ])
})

test('messages that WhatsApp kept while the instance was away are events, each once, in order', async () => {
  await using stage = await Stage.open()
  const { id, phone, connection } = await stage.link()
  await stage.stop(connection)
  const texts = Array.from({ length: 40 }, (_, index) => `kept ${index}`)
  for (const text of texts) await stage.network.writeAs({ from: CONTACT, to: phone, text })
  await stage.connect(id)
  const events = await until('all events', async () => {
    const all = await stage.received(id)
    return all.length >= texts.length && all
  })
  expect(events.map(({ text }) => text)).toEqual(texts)
})

test('an answer to a sent message arrives as an event', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  await stage.accept(id, '15005550005', 'say it again')
  const [event] = await until('the answer', async () => {
    const all = await stage.received(id)
    return all.length > 0 && all
  })
  expect(event).toMatchObject({ from: '15005550005', text: 'say it again' })
})

test('a message is recorded before WhatsApp is notified: while the store refuses, WhatsApp keeps it', async () => {
  await using stage = await Stage.open()
  const { id, phone, connection } = await stage.link()
  await stage.stop(connection)
  const { events } = stage.store
  const refusing = { ...stage.store, events: Object.assign(Object.create(events), { recordIncoming: refuse }) }
  const second = await stage.connect(id, { store: refusing })
  await stage.reaches(id, 'connected')
  await stage.network.writeAs({ from: CONTACT, to: phone, text: 'held' })
  await until('the refusal', () => stage.log.some(line => line.includes('not now')))
  await stage.stop(second)
  const before = stage.log.length
  await stage.connect(id)
  await until('the event', async () => (await stage.received(id)).length === 1)
  // Its key was used up the first time: the content came from the journal, not from the sender a second time.
  expect(stage.log.slice(before).join()).not.toContain('failed to decrypt')
})

async function refuse(): Promise<never> {
  throw new Error('not now')
}

test('two linked clients write to each other', async () => {
  await using stage = await Stage.open()
  const a = await stage.link()
  const b = await stage.link()
  const { id: there } = await stage.accept(a.id, b.phone, 'ping')
  await until('it to arrive', async () => (await stage.received(b.id)).some(({ text }) => text === 'ping'))
  await stage.accept(b.id, a.phone, 'pong')
  await until('the answer', async () => (await stage.received(a.id)).some(({ text }) => text === 'pong'))
  await stage.becomes(a.id, there, 'read')
  expect(await stage.eventsOf(a.id, there)).toEqual(['message.sent', 'message.delivered', 'message.read'])
})

test('any content of a contact is an event of its type, with its caption or reaction; protocol messages are not', async () => {
  await using stage = await Stage.open()
  const { id, phone } = await stage.link()
  const other = await stage.link()
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
  await stage.stop(other.connection)
  const lease = await stage.lease(other.id)
  for (const content of contents) {
    const message = await stage.accept(other.id, phone, 'another program sends more than texts')
    const prepared = { address: `${phone}@s.whatsapp.net`, content: proto.Message.encode(content).finish() }
    await stage.store.messages.recordPrepared(lease, message.id, prepared)
  }
  await stage.connect(other.id)
  await until('the last', async () => (await stage.received(id)).some(({ text }) => text === 'the last'))
  const told = (await stage.received(id)).map(({ type, text }) => (text === undefined ? type : `${type}: ${text}`))
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
    'other',
    'text: the last',
  ])
})

test('two linked clients that write first at the same time decrypt each other at once', async () => {
  await using stage = await Stage.open()
  const [a, b] = await Promise.all([stage.link(), stage.link()])
  const texts = ['one', 'two', 'three', 'four', 'five']
  const sent: [string, string][] = []
  for (const text of texts) {
    const [there, back] = await Promise.all([stage.accept(a.id, b.phone, text), stage.accept(b.id, a.phone, text)])
    sent.push([a.id, there.id], [b.id, back.id])
  }
  for (const [id, message] of sent) {
    await stage.becomes(id, message, 'read')
    expect(await stage.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  }
  for (const { id } of [a, b]) {
    await until('all texts', async () => (await stage.receivedIds(id)).length >= texts.length)
    expect((await stage.received(id)).map(({ text }) => text).sort()).toEqual([...texts].sort())
  }
  expect(stage.log.join()).not.toContain('failed to decrypt')
})
