import type { Order } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { ASSUMED_RESTRICTION_MS } from '../../../src/domain/connection/restriction.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/**
 * WhatsApp does not let the account write to strangers (463). docs/whatsapp-situations.md lists what it reports about
 * this.
 */

const KNOWN = '5511987654321'
const WRITER = '5511987650001'
const WRITER_SHORT = '551187650001'
const STRANGER = '5511987650002'
const ANOTHER = '5511987650003'
const GROUP = '120363000000000009@g.us'

/** A person's LID in the simulated network. */
const lidOf = (number: string) => `${999_999_999_999_999 - Number(number)}@lid`

type Restrict = Omit<Extract<Order, { kind: 'restrict' }>, 'kind' | 'account'>

/** A linked instance that has written to one contact and received a message from another. */
async function openHarness() {
  const harness = await WhatsappHarness.open()
  const linked = await harness.link()
  const { id, phone } = linked
  const { id: first } = await harness.accept(id, KNOWN, 'before')
  await harness.becomes(id, first, 'read')
  await harness.network.misbehave({ kind: 'write', from: WRITER, to: phone, text: 'hello', count: 1 })
  await until('the message', async () => (await harness.receivedIds(id)).length === 1)
  const restrict = (order: Restrict) => harness.network.misbehave({ kind: 'restrict', account: phone, ...order })
  const restricted = () =>
    until('the restriction to be reported', async () => {
      const record = await harness.store.connections.find(id)
      return record?.cause === 'restricted' && record
    })
  const free = () =>
    until('the restriction to end', async () => {
      const record = await harness.store.connections.find(id)
      return record?.cause === 'connected' && record
    })
  return { ...linked, harness, restrict, restricted, free, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
}

describe.concurrent('WhatsApp restricts the account', () => {
  test('with an end time: messages to strangers wait for it, all others are sent', async () => {
    await using world = await openHarness()
    const { harness, id, restrict, restricted, free } = world
    await restrict({ seconds: 3_600 })
    const told = await restricted()
    expect(told).toMatchObject({ state: 'connected', restriction: { reportedByWhatsapp: true } })
    const ends = new Date(told.restriction!.until).toISOString().slice(0, 16).replace('T', ' ')
    expect(told.reason).toContain(`write to new recipients until ${ends} UTC`)
    const { id: waiting } = await harness.accept(id, STRANGER, 'later')
    for (const to of [KNOWN, WRITER, GROUP]) {
      const { id: message } = await harness.accept(id, to, 'now')
      await harness.becomes(id, message, 'read')
    }
    expect((await harness.store.messages.find(id, waiting))?.state).toBe('queued')
    await restrict({ seconds: 1 })
    await harness.becomes(id, waiting, 'read')
    expect(await harness.network.inbox(STRANGER)).toMatchObject([{ text: 'later', copies: 1 }])
    expect((await free()).restriction).toBeNull()
  })

  test('and lifts it early: the waiting messages are sent immediately, in order', async () => {
    await using world = await openHarness()
    const { harness, id, restrict, restricted, free } = world
    await restrict({ seconds: 3_600 })
    await restricted()
    const texts = ['first', 'second', 'third']
    const messages = []
    for (const text of texts) messages.push(await harness.accept(id, STRANGER, text))
    await restrict({ seconds: null })
    for (const message of messages) await harness.becomes(id, message.id, 'read')
    expect((await harness.network.inbox(STRANGER)).map(({ text }) => text)).toEqual(texts)
    await free()
  })

  test('and a stranger writes: the messages that waited for that stranger are sent', async () => {
    await using world = await openHarness()
    const { harness, id, phone, restrict, restricted } = world
    await restrict({ seconds: 3_600 })
    await restricted()
    const { id: waiting } = await harness.accept(id, STRANGER, 'at last')
    const { id: other } = await harness.accept(id, ANOTHER, 'never asked')
    const { id: past } = await harness.accept(id, KNOWN, 'past them')
    await harness.becomes(id, past, 'read')
    await harness.network.misbehave({ kind: 'write', from: STRANGER, to: phone, text: 'hi', count: 1 })
    await harness.becomes(id, waiting, 'read')
    expect((await harness.store.messages.find(id, other))?.state).toBe('queued')
  })

  test('and a stranger writes whose text names the LID, or the number with the ninth digit: it is sent', async () => {
    await using world = await openHarness()
    const { harness, id, phone, restrict, restricted } = world
    const [withDigit, withoutDigit] = ['5511987650009', '551187650009']
    await harness.network.misbehave({ kind: 'look_up', number: withDigit, finds: withoutDigit })
    await restrict({ seconds: 3_600 })
    await restricted()
    const byLid = await harness.accept(id, lidOf(STRANGER), 'by LID')
    const byNumber = await harness.accept(id, withDigit, 'by number')
    const { id: past } = await harness.accept(id, KNOWN, 'past them')
    await harness.becomes(id, past, 'read')
    for (const { id: waiting } of [byLid, byNumber])
      expect((await harness.store.messages.find(id, waiting))?.state).toBe('queued')
    for (const from of [STRANGER, withoutDigit])
      await harness.network.misbehave({ kind: 'write', from, to: phone, text: 'hi', count: 1 })
    for (const { id: waiting } of [byLid, byNumber]) await harness.becomes(id, waiting, 'read')
    expect((await harness.network.inbox(withoutDigit)).map(({ text }) => text)).toEqual(['by number'])
  })

  test('and the recipient wrote before, under another address: the text is sent immediately', async () => {
    await using world = await openHarness()
    const { harness, id, restrict, restricted } = world
    await harness.network.misbehave({ kind: 'look_up', number: WRITER_SHORT, finds: WRITER })
    await restrict({ seconds: 3_600 })
    await restricted()
    for (const to of [lidOf(WRITER), WRITER_SHORT]) {
      const { id: message } = await harness.accept(id, to, 'now')
      await harness.becomes(id, message, 'read')
    }
  })

  test('and Pombal is restarted meanwhile: messages to strangers still wait', async () => {
    await using world = await openHarness()
    const { harness, id, connection, restrict, restricted } = world
    await restrict({ seconds: 3_600 })
    const { restriction } = await restricted()
    const { id: waiting } = await harness.accept(id, STRANGER, 'later')
    await harness.stop(connection)
    await harness.connect(id)
    expect((await restricted()).restriction).toEqual(restriction)
    const { id: past } = await harness.accept(id, KNOWN, 'now')
    await harness.becomes(id, past, 'read')
    expect((await harness.store.messages.find(id, waiting))?.state).toBe('queued')
    await restrict({ seconds: null })
    await harness.becomes(id, waiting, 'read')
  })
})

describe.concurrent('WhatsApp refuses a message with 463', () => {
  test('and gives an end time on request: that message has failed, later ones to strangers wait until then', async () => {
    await using world = await openHarness()
    const { harness, id, restrict, restricted } = world
    await restrict({ seconds: 3_600, notify: false })
    const { id: refused } = await harness.accept(id, STRANGER, 'refused')
    const { failure } = await harness.becomes(id, refused, 'failed')
    expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining('463') })
    await until('WhatsApp to say until when', async () => (await restricted()).restriction?.reportedByWhatsapp)
    const { id: waiting } = await harness.accept(id, ANOTHER, 'later')
    const { id: past } = await harness.accept(id, KNOWN, 'now')
    await harness.becomes(id, past, 'read')
    expect((await harness.store.messages.find(id, waiting))?.state).toBe('queued')
    await restrict({ seconds: 1 })
    await harness.becomes(id, waiting, 'read')
    expect(await harness.eventsOf(id, refused)).toEqual(['message.failed'])
    expect(await harness.network.inbox(STRANGER)).toEqual([])
  })

  test('and gives no end time: messages to strangers wait for a while, across a restart too, and are then sent', async () => {
    await using world = await openHarness()
    const { harness, id, connection, restrict, restricted, free } = world
    const ack = { stanza: 'ack', direction: 'out', attrs: { class: 'message' }, contact: STRANGER } as const
    await harness.network.misbehave({ kind: 'rule', rule: { when: ack, do: { error: '463' } } })
    const { id: refused } = await harness.accept(id, STRANGER, 'refused')
    await harness.becomes(id, refused, 'failed')
    const { reason, restriction } = await restricted()
    expect(reason).toMatch(/new recipients for now \(Pombal tries again at .* UTC\)/)
    expect(restriction).toMatchObject({ until: restriction!.since + ASSUMED_RESTRICTION_MS, reportedByWhatsapp: false })
    // WhatsApp's report that there is no restriction does not end the assumed one.
    await restrict({ seconds: null })
    const { id: waiting } = await harness.accept(id, ANOTHER, 'later')
    const { id: past } = await harness.accept(id, KNOWN, 'now')
    await harness.becomes(id, past, 'read')
    expect((await harness.store.messages.find(id, waiting))?.state).toBe('queued')
    await harness.stop(connection)
    await harness.connect(id, { now: () => Date.now() + ASSUMED_RESTRICTION_MS })
    await harness.becomes(id, waiting, 'read')
    expect((await free()).restriction).toBeNull()
  })
})
