import type { Order } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { ASSUMED_RESTRICTION_MS } from '../../src/domain/restriction.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

/**
 * WhatsApp does not let the account write to strangers (463). docs/whatsapp-situations.md lists what it reports of
 * this.
 */

const KNOWN = '5511987654321'
const WRITER = '5511987650001'
const STRANGER = '5511987650002'
const ANOTHER = '5511987650003'
const GROUP = '120363000000000009@g.us'

type Restrict = Omit<Extract<Order, { kind: 'restrict' }>, 'kind' | 'account'>

/** A linked instance that has written to one contact and received a message from another. */
async function openStage() {
  const stage = await Stage.open()
  const linked = await stage.link()
  const { id, phone } = linked
  const { id: first } = await stage.accept(id, KNOWN, 'before')
  await stage.becomes(id, first, 'read')
  await stage.network.misbehave({ kind: 'write', from: WRITER, to: phone, text: 'hello', count: 1 })
  await until('the message', async () => (await stage.receivedIds(id)).length === 1)
  const restrict = (order: Restrict) => stage.network.misbehave({ kind: 'restrict', account: phone, ...order })
  const restricted = () =>
    until('the restriction to be told', async () => {
      const record = await stage.store.connections.find(id)
      return record?.cause === 'restricted' && record
    })
  const free = () =>
    until('the restriction to end', async () => {
      const record = await stage.store.connections.find(id)
      return record?.cause === 'connected' && record
    })
  return { ...linked, stage, restrict, restricted, free, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe.concurrent('WhatsApp restricts the account', () => {
  test('and says until when: strangers wait for it, everybody else gets messages', async () => {
    await using world = await openStage()
    const { stage, id, restrict, restricted, free } = world
    await restrict({ seconds: 3_600 })
    const told = await restricted()
    expect(told).toMatchObject({ state: 'connected', restriction: { reportedByWhatsapp: true } })
    const ends = new Date(told.restriction!.until).toISOString().slice(0, 16).replace('T', ' ')
    expect(told.reason).toContain(`write to new contacts until ${ends} UTC`)
    const { id: waiting } = await stage.accept(id, STRANGER, 'later')
    for (const to of [KNOWN, WRITER, GROUP]) {
      const { id: message } = await stage.accept(id, to, 'now')
      await stage.becomes(id, message, 'read')
    }
    expect((await stage.store.messages.find(id, waiting))?.state).toBe('queued')
    await restrict({ seconds: 1 })
    await stage.becomes(id, waiting, 'read')
    expect(await stage.network.inbox(STRANGER)).toMatchObject([{ text: 'later', copies: 1 }])
    expect((await free()).restriction).toBeNull()
  })

  test('and lifts it early: who waited gets the messages at once, in order', async () => {
    await using world = await openStage()
    const { stage, id, restrict, restricted, free } = world
    await restrict({ seconds: 3_600 })
    await restricted()
    const texts = ['first', 'second', 'third']
    const messages = []
    for (const text of texts) messages.push(await stage.accept(id, STRANGER, text))
    await restrict({ seconds: null })
    for (const message of messages) await stage.becomes(id, message.id, 'read')
    expect((await stage.network.inbox(STRANGER)).map(({ text }) => text)).toEqual(texts)
    await free()
  })

  test('and a stranger writes: the message that waited for them is sent', async () => {
    await using world = await openStage()
    const { stage, id, phone, restrict, restricted } = world
    await restrict({ seconds: 3_600 })
    await restricted()
    const { id: waiting } = await stage.accept(id, STRANGER, 'at last')
    const { id: other } = await stage.accept(id, ANOTHER, 'never asked')
    const { id: past } = await stage.accept(id, KNOWN, 'past them')
    await stage.becomes(id, past, 'read')
    await stage.network.misbehave({ kind: 'write', from: STRANGER, to: phone, text: 'hi', count: 1 })
    await stage.becomes(id, waiting, 'read')
    expect((await stage.store.messages.find(id, other))?.state).toBe('queued')
  })

  test('and Pombal is started again meanwhile: strangers still wait', async () => {
    await using world = await openStage()
    const { stage, id, connection, restrict, restricted } = world
    await restrict({ seconds: 3_600 })
    const { restriction } = await restricted()
    const { id: waiting } = await stage.accept(id, STRANGER, 'later')
    await stage.stop(connection)
    await stage.connect(id)
    expect((await restricted()).restriction).toEqual(restriction)
    const { id: past } = await stage.accept(id, KNOWN, 'now')
    await stage.becomes(id, past, 'read')
    expect((await stage.store.messages.find(id, waiting))?.state).toBe('queued')
    await restrict({ seconds: null })
    await stage.becomes(id, waiting, 'read')
  })
})

describe.concurrent('WhatsApp refuses a message with 463', () => {
  test('and, asked, says until when: that message has failed, those behind it wait until then', async () => {
    await using world = await openStage()
    const { stage, id, restrict, restricted } = world
    await restrict({ seconds: 3_600, notify: false })
    const { id: refused } = await stage.accept(id, STRANGER, 'refused')
    const { failure } = await stage.becomes(id, refused, 'failed')
    expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining('463') })
    await until('WhatsApp to say until when', async () => (await restricted()).restriction?.reportedByWhatsapp)
    const { id: waiting } = await stage.accept(id, ANOTHER, 'later')
    const { id: past } = await stage.accept(id, KNOWN, 'now')
    await stage.becomes(id, past, 'read')
    expect((await stage.store.messages.find(id, waiting))?.state).toBe('queued')
    await restrict({ seconds: 1 })
    await stage.becomes(id, waiting, 'read')
    expect(await stage.eventsOf(id, refused)).toEqual(['message.failed'])
    expect(await stage.network.inbox(STRANGER)).toEqual([])
  })

  test('and does not say until when: strangers wait for a while, also over a restart, and then go out', async () => {
    await using world = await openStage()
    const { stage, id, connection, restrict, restricted, free } = world
    const ack = { stanza: 'ack', direction: 'out', attrs: { class: 'message' }, contact: STRANGER } as const
    await stage.network.misbehave({ kind: 'rule', rule: { when: ack, do: { error: '463' } } })
    const { id: refused } = await stage.accept(id, STRANGER, 'refused')
    await stage.becomes(id, refused, 'failed')
    const { reason, restriction } = await restricted()
    expect(reason).toMatch(/new contacts for now \(Pombal tries again at .* UTC\)/)
    expect(restriction).toMatchObject({ until: restriction!.since + ASSUMED_RESTRICTION_MS, reportedByWhatsapp: false })
    // That there is no such lock does not make the refusal undone.
    await restrict({ seconds: null })
    const { id: waiting } = await stage.accept(id, ANOTHER, 'later')
    const { id: past } = await stage.accept(id, KNOWN, 'now')
    await stage.becomes(id, past, 'read')
    expect((await stage.store.messages.find(id, waiting))?.state).toBe('queued')
    await stage.stop(connection)
    await stage.connect(id, { now: () => Date.now() + ASSUMED_RESTRICTION_MS })
    await stage.becomes(id, waiting, 'read')
    expect((await free()).restriction).toBeNull()
  })
})
