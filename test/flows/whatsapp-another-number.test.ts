import { describe, expect, test } from 'vitest'
import { STORES } from '../database.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const CONTACT = '5511987654321'
const OTHERS = Array.from({ length: 5 }, (_, n) => `551190000000${n}`)
const ANOTHER = 'another phone'

/** A linked instance; the next QR code after the first is scanned by another phone. */
async function openStage(kind: (typeof STORES)[number]) {
  const stage = await Stage.open({}, kind)
  const id = await stage.createInstance()
  let scanned = 0
  const linkBy = (qr: string) => stage.network.scanQr(qr, scanned++ === 0 ? id : ANOTHER)
  const network = { kind: 'simulated' as const, url: `ws://127.0.0.1:${stage.line.port}/ws/chat`, linkBy }
  const connection = await stage.connect(id, { network })
  await stage.store.connections.requestConnect(id, null)
  const { phone } = await stage.reaches(id, 'connected')
  /** What contacts have on their phones from a number. */
  const shownFrom = async (from: string | null) => {
    const inboxes = await Promise.all([CONTACT, ...OTHERS].map(to => stage.network.inbox(to)))
    return inboxes.flat().flatMap(message => (message.from === from ? [message.text] : []))
  }
  return { stage, id, network, connection, phone: phone as string, shownFrom }
}

/** WhatsApp accepts every message and acknowledges none; nor do phones send receipts. */
async function holdAcknowledgements(stage: Stage): Promise<void> {
  for (const what of [{ stanza: 'ack', attrs: { class: 'message' } }, { stanza: 'receipt' }]) {
    const when = { ...what, direction: 'out' } as const
    await stage.network.misbehave({ kind: 'rule', rule: { when, do: 'hold' } })
  }
}

describe.each(STORES)('on %s', kind => {
  test('messages that waited in memory at a logout are never sent from the number linked next', async () => {
    const { stage, id, phone, shownFrom } = await openStage(kind)
    await using _ = stage
    await holdAcknowledgements(stage)
    const old = [await stage.accept(id, CONTACT, 'old 0')]
    await until('the first to be on the phone', async () => (await shownFrom(phone)).length > 0)
    for (let n = 1; n <= 10; n += 1) old.push(await stage.accept(id, CONTACT, `old ${n}`))
    await stage.store.connections.requestLogout(id)
    for (const { id: message } of old) await stage.becomes(id, message, 'failed')
    await stage.reaches(id, 'logged_out')
    await stage.network.misbehave({ kind: 'clear' })

    await stage.store.connections.requestConnect(id, null)
    const { phone: next } = await stage.reaches(id, 'connected')
    expect(next).not.toBe(phone)
    const { id: message } = await stage.accept(id, CONTACT, 'new')
    await stage.becomes(id, message, 'read')
    expect(await shownFrom(next)).toEqual(['new'])
  })

  test('a message whose acknowledgement is under way at a logout is sent; one that stays without is unconfirmed', async () => {
    const { stage, id, shownFrom, phone } = await openStage(kind)
    await using _ = stage
    const [slow = '', mute = ''] = OTHERS
    await holdAcknowledgements(stage)
    const sent = await stage.accept(id, slow, 'acknowledged late')
    await until('it to be on the phone', async () => (await shownFrom(phone)).length === 1)
    await stage.store.connections.requestLogout(id)
    await stage.network.misbehave({ kind: 'clear' })
    await stage.reaches(id, 'logged_out')
    expect(await stage.eventsOf(id, sent.id)).not.toContain('message.failed')
    await stage.becomes(id, sent.id, 'sent')

    await stage.store.connections.requestConnect(id, null)
    await stage.reaches(id, 'connected')
    await holdAcknowledgements(stage)
    const unknown = await stage.accept(id, mute, 'never acknowledged')
    const behind = await stage.accept(id, mute, 'never written')
    await until('it to be on the phone', async () => (await stage.network.inbox(mute)).length === 1)
    await stage.store.connections.requestLogout(id)
    expect((await stage.becomes(id, unknown.id, 'failed')).failure?.code).toBe('unconfirmed')
    expect((await stage.becomes(id, behind.id, 'failed')).failure?.code).toBe('instance_logged_out')
  })

  test('after a logout on the phone, messages written and not acknowledged are unconfirmed', async () => {
    const { stage, id, shownFrom, phone } = await openStage(kind)
    await using _ = stage
    await holdAcknowledgements(stage)
    const { id: message } = await stage.accept(id, CONTACT, 'never acknowledged')
    await until('it to be on the phone', async () => (await shownFrom(phone)).length === 1)
    await stage.network.unlink(phone)
    expect((await stage.becomes(id, message, 'failed')).failure?.code).toBe('unconfirmed')
  })

  test('after a deletion of the instance, messages written and not acknowledged are unconfirmed', async () => {
    const { stage, id, network, connection, shownFrom, phone } = await openStage(kind)
    await using _ = stage
    await holdAcknowledgements(stage)
    const { id: message } = await stage.accept(id, CONTACT, 'never acknowledged')
    const { id: behind } = await stage.accept(id, CONTACT, 'never written')
    await until('it to be on the phone', async () => (await shownFrom(phone)).length === 1)
    await stage.store.instances.delete(id, Date.now())
    await connection.stop({ logOut: true })
    await stage.connect(id, { network })
    expect((await stage.becomes(id, message, 'failed')).failure?.code).toBe('unconfirmed')
    expect((await stage.becomes(id, behind, 'failed')).failure?.code).toBe('instance_deleted')
  })

  test('a message whose acceptance is committed after the queue has failed fails too, and soon', async () => {
    const { stage, id, connection, network, shownFrom } = await openStage(kind)
    await using _ = stage
    await stage.stop(connection)
    // A call that saw the instance connected, and whose commit came last.
    const { id: message } = await stage.accept(id, CONTACT, 'late')
    const lease = await stage.lease(id)
    await stage.store.credentials.clear(lease)
    await stage.store.connections.record(lease, { state: 'logged_out', goal: 'idle', phone: null }, Date.now())
    await stage.store.connections.requestConnect(id, null)
    await stage.connect(id, { network })
    const { phone: next } = await stage.reaches(id, 'connected')
    expect((await stage.becomes(id, message, 'failed')).failure?.code).toBe('instance_logged_out')
    const { id: fresh } = await stage.accept(id, CONTACT, 'new')
    await stage.becomes(id, fresh, 'read')
    expect(await shownFrom(next)).toEqual(['new'])
  })
})
