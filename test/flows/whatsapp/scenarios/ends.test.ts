import type { Order } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import type { ConnectionRecord } from '../../../../src/store/connections/connections.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** How WhatsApp closes or refuses a connection; docs/whatsapp-situations.md lists these cases. */

const CONTACT = '5511987654321'

/** Exchanges a message in each direction. */
async function works(harness: WhatsappHarness, id: string, phone: string): Promise<void> {
  const { id: message } = await harness.accept(id, CONTACT, 'still here?')
  await harness.becomes(id, message, 'sent')
  const before = (await harness.received(id)).length
  await harness.network.writeAs({ from: CONTACT, to: phone, text: 'yes' })
  await until('the answer', async () => (await harness.received(id)).length === before + 1)
}

async function credentialsOf(harness: WhatsappHarness, id: string): Promise<number> {
  return (await harness.store.credentials.get(id, 'creds', ['creds'])).size
}

describe.concurrent('a stream error', () => {
  test.each<[string, Omit<Extract<Order, { kind: 'stream_error' }>, 'kind' | 'account'>, RegExp]>([
    ['515: a new socket at once', { code: '515' }, /^Connecting/],
    ['516: a new socket after a pause', { code: '516' }, /asked for a new connection.*again in 1 s/],
    ['without a code: a new socket after a pause', {}, /without saying why.*again in 1 s/],
    ['500: a new socket after a pause', { code: '500' }, /without saying why.*again in 1 s/],
    ['that nobody knows: a new socket after a pause', { code: '999' }, /code 999.*again in 1 s/],
  ])('%s', async (_, error, reason) => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    await harness.network.misbehave({ kind: 'stream_error', account: phone, ...error })
    expect(await harness.firstReason(id, 'reconnecting')).toMatch(reason)
    await harness.reaches(id, 'connected')
    await works(harness, id, phone)
  })

  test('503: queued messages are sent after a longer pause', async () => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    await harness.network.misbehave({ kind: 'stream_error', account: phone, code: '503' })
    expect((await harness.reaches(id, 'reconnecting')).reason).toMatch(/not available right now.*again in ([5-9]|10) s/)
    const { id: message } = await harness.accept(id, CONTACT, 'after the pause')
    await harness.becomes(id, message, 'sent')
  })

  test('conflict, replaced: the instance stops with the reason, and reconnects on request with the same credentials', async () => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    await harness.network.misbehave({ kind: 'stream_error', account: phone, conflict: 'replaced' })
    expect((await harness.reaches(id, 'stopped')).reason).toContain('opened elsewhere')
    expect(await credentialsOf(harness, id)).toBe(1)
    await harness.store.connections.requestConnect(id, null)
    await harness.reaches(id, 'connected')
    await works(harness, id, phone)
  })

  test.each([['401'], [undefined]])(
    '%s device_removed: logged out, and only now are credentials erased',
    async code => {
      await using harness = await WhatsappHarness.open()
      const { id, phone } = await harness.link()
      const error = { conflict: 'device_removed', ...(code && { code }) } as const
      await harness.network.misbehave({ kind: 'stream_error', account: phone, ...error })
      expect((await harness.reaches(id, 'logged_out')).reason).toContain('from the phone')
      await until('the credentials to be gone', async () => (await credentialsOf(harness, id)) === 0)
    },
  )
})

describe.concurrent('a login that fails', () => {
  test.each([
    ['403', /may be banned/],
    ['405', /refused this version.*WHATSAPP_VERSION/],
    ['409', /unknown/],
    ['411', /does not support linked devices/],
  ])(
    'with %s: the instance stops with the reason, keeps its credentials, and reconnects on request',
    async (reason, words) => {
      await using harness = await WhatsappHarness.open()
      const { id, phone } = await harness.link()
      await harness.network.misbehave({ kind: 'refuse_logins', reason, count: 1 })
      await harness.network.misbehave({ kind: 'cut', account: phone })
      const stopped = await harness.reaches(id, 'stopped')
      expect(stopped.reason).toMatch(words)
      expect(stopped.phone).toBe(phone)
      expect(await credentialsOf(harness, id)).toBe(1)
      await harness.store.connections.requestConnect(id, null)
      await harness.reaches(id, 'connected')
      await works(harness, id, phone)
    },
  )

  test('with 401: logged out', async () => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    await harness.network.misbehave({ kind: 'refuse_logins', reason: '401', count: 1 })
    await harness.network.misbehave({ kind: 'cut', account: phone })
    expect((await harness.reaches(id, 'logged_out')).reason).toContain('from the phone')
    await until('the credentials to be gone', async () => (await credentialsOf(harness, id)) === 0)
  })

  test('with 503: it is repeated after longer pauses', async () => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    await harness.network.misbehave({ kind: 'refuse_logins', reason: '503', count: 1 })
    await harness.network.misbehave({ kind: 'cut', account: phone })
    await until('the pause', async () => /not available right now/.test((await find(harness, id)).reason ?? ''))
    await harness.reaches(id, 'connected')
    await works(harness, id, phone)
  })
})

describe.concurrent('the socket', () => {
  test('cut again and again at login: pauses grow, nothing is lost, and the instance connects in the end', async () => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    const when = { stanza: 'success', direction: 'out', times: 2 } as const
    await harness.network.misbehave({ kind: 'rule', rule: { when, do: 'cut' } })
    await harness.network.misbehave({ kind: 'cut', account: phone })
    const { id: message } = await harness.accept(id, CONTACT, 'through three cuts')
    await harness.becomes(id, message, 'read')
    expect(await harness.network.inbox(CONTACT)).toHaveLength(1)
    expect(harness.log.filter(line => line.includes('connection.closed')).length).toBeGreaterThanOrEqual(3)
  })

  test('may use wss: to a simulated network with a self-signed certificate on loopback', async () => {
    await using harness = await WhatsappHarness.open({ tls: true })
    expect(harness.network.url).toMatch(/^wss:/)
    const id = await harness.createInstance()
    const { phone } = await harness.network.openAccount(id)
    const linkBy = (qr: string) => harness.network.scanQr(qr, id)
    await harness.connect(id, { network: { kind: 'simulated', url: harness.network.url, linkBy } })
    await harness.store.connections.requestConnect(id, null)
    await harness.reaches(id, 'connected')
    await works(harness, id, phone)
  })

  test('of a second login with the same credentials replaces the first', async () => {
    await using harness = await WhatsappHarness.open()
    const { id } = await harness.link()
    // The second login stands for another program, which does not read or write our rows.
    const record = await find(harness, id)
    const elsewhere = { ...harness.store.connections, find: async () => record, record: async () => undefined }
    await harness.connect(id, { scan: false, store: { ...harness.store, connections: elsewhere } })
    expect((await harness.reaches(id, 'stopped')).reason).toContain('opened elsewhere')
  })
})

async function find(harness: WhatsappHarness, id: string): Promise<ConnectionRecord> {
  return (await harness.store.connections.find(id)) as ConnectionRecord
}
