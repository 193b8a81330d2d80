import { describe, expect, test } from 'vitest'
import type { StoreKind } from '../../../databases/database.ts'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

const CONTACT = '5511987654321'
const OTHERS = Array.from({ length: 5 }, (_, n) => `551190000000${n}`)
const ANOTHER = 'another phone'

/** A linked instance; the next QR code after the first is scanned by another phone. */
async function openHarness(kind: StoreKind) {
  const harness = await WhatsappHarness.open({}, kind)
  const id = await harness.createInstance()
  let scanned = 0
  const linkBy = (qr: string) => harness.network.scanQr(qr, scanned++ === 0 ? id : ANOTHER)
  const network = { kind: 'simulated' as const, url: `ws://127.0.0.1:${harness.line.port}/ws/chat`, linkBy }
  const connection = await harness.connect(id, { network })
  await harness.store.connections.requestConnect(id, null)
  const { phone } = await harness.reaches(id, 'connected')
  /** What contacts have on their phones from a number. */
  const shownFrom = async (from: string | null) => {
    const inboxes = await Promise.all([CONTACT, ...OTHERS].map(to => harness.network.inbox(to)))
    return inboxes.flat().flatMap(message => (message.from === from ? [message.text] : []))
  }
  return { harness, id, network, connection, phone: phone as string, shownFrom }
}

/** WhatsApp accepts every message and acknowledges none; nor do phones send receipts. */
async function holdAcknowledgements(harness: WhatsappHarness): Promise<void> {
  for (const what of [{ stanza: 'ack', attrs: { class: 'message' } }, { stanza: 'receipt' }]) {
    const when = { ...what, direction: 'out' } as const
    await harness.network.misbehave({ kind: 'rule', rule: { when, do: 'hold' } })
  }
}

describe.each(ONE_STORE)('on %s', kind => {
  test('messages that were in memory at a logout are never sent from the number linked next', async () => {
    const { harness, id, phone, shownFrom } = await openHarness(kind)
    await using _ = harness
    await holdAcknowledgements(harness)
    const old = [await harness.accept(id, CONTACT, 'old 0')]
    await until('the first to be on the phone', async () => (await shownFrom(phone)).length > 0)
    for (let n = 1; n <= 10; n += 1) old.push(await harness.accept(id, CONTACT, `old ${n}`))
    await harness.store.connections.requestLogout(id)
    for (const { id: message } of old) await harness.becomes(id, message, 'failed')
    await harness.reaches(id, 'logged_out')
    await harness.network.misbehave({ kind: 'clear' })

    await harness.store.connections.requestConnect(id, null)
    const { phone: next } = await harness.reaches(id, 'connected')
    expect(next).not.toBe(phone)
    const { id: message } = await harness.accept(id, CONTACT, 'new')
    await harness.becomes(id, message, 'read')
    expect(await shownFrom(next)).toEqual(['new'])
  })

  test.each(['its owner', 'the next owner'])(
    'a logout that is followed immediately by a request to connect is carried out first, by %s',
    async who => {
      const { harness, id, network, connection, phone } = await openHarness(kind)
      await using _ = harness
      const isRunning = who === 'its owner'
      if (!isRunning) await harness.stop(connection)
      const { connections } = harness.store
      await Promise.all([connections.requestLogout(id), connections.requestConnect(id, null)])
      if (!isRunning) await harness.connect(id, { network })
      const linked = await until('another number to be linked', async () => {
        const record = await connections.find(id)
        return record?.state === 'connected' && record.phone !== phone && record
      })
      expect(linked.goal).toBe('online')
      const accounts = await harness.network.listAccounts()
      expect(accounts.find(account => account.phone === phone)?.linked).toBe(false)
      const { data: events } = await harness.store.events.list(id, { limit: 10 })
      const inOrder = events.map(event => event.kind).reverse()
      const linking = ['instance.linking', 'instance.connected']
      expect(inOrder).toEqual([...linking, 'instance.logged_out', ...linking])
    },
  )

  test('a message acknowledged during a logout is sent; one that is not is unconfirmed', async () => {
    const { harness, id, shownFrom, phone } = await openHarness(kind)
    await using _ = harness
    const [slow = '', mute = ''] = OTHERS
    await holdAcknowledgements(harness)
    const sent = await harness.accept(id, slow, 'acknowledged late')
    await until('it to be on the phone', async () => (await shownFrom(phone)).length === 1)
    await harness.store.connections.requestLogout(id)
    await harness.network.misbehave({ kind: 'clear' })
    await harness.reaches(id, 'logged_out')
    expect(await harness.eventsOf(id, sent.id)).not.toContain('message.failed')
    await harness.becomes(id, sent.id, 'sent')

    await harness.store.connections.requestConnect(id, null)
    await harness.reaches(id, 'connected')
    await holdAcknowledgements(harness)
    const unknown = await harness.accept(id, mute, 'never acknowledged')
    const behind = await harness.accept(id, mute, 'never written')
    await until('it to be on the phone', async () => (await harness.network.inbox(mute)).length === 1)
    await harness.store.connections.requestLogout(id)
    expect((await harness.becomes(id, unknown.id, 'failed')).failure?.code).toBe('unconfirmed')
    expect((await harness.becomes(id, behind.id, 'failed')).failure?.code).toBe('instance_logged_out')
  })

  test('after a logout on the phone, unacknowledged messages are unconfirmed', async () => {
    const { harness, id, shownFrom, phone } = await openHarness(kind)
    await using _ = harness
    await holdAcknowledgements(harness)
    const { id: message } = await harness.accept(id, CONTACT, 'never acknowledged')
    await until('it to be on the phone', async () => (await shownFrom(phone)).length === 1)
    await harness.network.unlink(phone)
    expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('unconfirmed')
  })

  test('after the deletion of the instance, unacknowledged messages are unconfirmed', async () => {
    const { harness, id, network, connection, shownFrom, phone } = await openHarness(kind)
    await using _ = harness
    await holdAcknowledgements(harness)
    const { id: message } = await harness.accept(id, CONTACT, 'never acknowledged')
    const { id: behind } = await harness.accept(id, CONTACT, 'never written')
    await until('it to be on the phone', async () => (await shownFrom(phone)).length === 1)
    await harness.store.instances.delete(id, Date.now())
    await connection.stop({ logOut: true })
    await harness.connect(id, { network })
    expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('unconfirmed')
    expect((await harness.becomes(id, behind, 'failed')).failure?.code).toBe('instance_deleted')
  })

  test('a message that is committed just after the queued messages have failed fails soon as well', async () => {
    const { harness, id, connection, network, shownFrom } = await openHarness(kind)
    await using _ = harness
    await harness.stop(connection)
    // A call that saw the instance connected, and whose commit came last.
    const { id: message } = await harness.accept(id, CONTACT, 'late')
    const lease = await harness.lease(id)
    await harness.store.credentials.clear(lease)
    await harness.store.connections.record(lease, { state: 'logged_out', goal: 'idle', phone: null }, Date.now())
    await harness.store.connections.requestConnect(id, null)
    await harness.connect(id, { network })
    const { phone: next } = await harness.reaches(id, 'connected')
    expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('instance_logged_out')
    const { id: fresh } = await harness.accept(id, CONTACT, 'new')
    await harness.becomes(id, fresh, 'read')
    expect(await shownFrom(next)).toEqual(['new'])
  })
})
