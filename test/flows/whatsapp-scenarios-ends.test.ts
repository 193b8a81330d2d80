import type { Order } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import type { ConnectionRecord } from '../../src/store/connections/connections.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

/** How WhatsApp ends or refuses a connection; docs/whatsapp-situations.md lists these. */

const CONTACT = '5511987654321'

/** Says something over the connection, both ways. */
async function works(stage: Stage, id: string, phone: string): Promise<void> {
  const { id: message } = await stage.accept(id, CONTACT, 'still here?')
  await stage.becomes(id, message, 'sent')
  const before = (await stage.received(id)).length
  await stage.network.writeAs({ from: CONTACT, to: phone, text: 'yes' })
  await until('the answer', async () => (await stage.received(id)).length === before + 1)
}

async function credentialsOf(stage: Stage, id: string): Promise<number> {
  return (await stage.store.credentials.get(id, 'creds', ['creds'])).size
}

describe.concurrent('a stream error', () => {
  test.each<[string, Omit<Extract<Order, { kind: 'stream_error' }>, 'kind' | 'account'>, RegExp]>([
    ['515: a new socket at once', { code: '515' }, /^Connecting/],
    ['516: a new socket after a pause', { code: '516' }, /asked for a new connection.*again in 1 s/],
    ['without a code: a new socket after a pause', {}, /without saying why.*again in 1 s/],
    ['500: a new socket after a pause', { code: '500' }, /without saying why.*again in 1 s/],
    ['that nobody knows: a new socket after a pause', { code: '999' }, /code 999.*again in 1 s/],
  ])('%s', async (_, error, reason) => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    await stage.network.misbehave({ kind: 'stream_error', account: phone, ...error })
    expect((await stage.reaches(id, 'reconnecting')).reason).toMatch(reason)
    await stage.reaches(id, 'connected')
    await works(stage, id, phone)
  })

  test('503: a longer pause, after which queued messages are sent', async () => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    await stage.network.misbehave({ kind: 'stream_error', account: phone, code: '503' })
    expect((await stage.reaches(id, 'reconnecting')).reason).toMatch(/not available right now.*again in ([5-9]|10) s/)
    const { id: message } = await stage.accept(id, CONTACT, 'after the pause')
    await stage.becomes(id, message, 'sent')
  })

  test('conflict, replaced: it stops and says why; connected again on demand, with the same credentials', async () => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    await stage.network.misbehave({ kind: 'stream_error', account: phone, conflict: 'replaced' })
    expect((await stage.reaches(id, 'stopped')).reason).toContain('opened elsewhere')
    expect(await credentialsOf(stage, id)).toBe(1)
    await stage.store.connections.requestConnect(id, null)
    await stage.reaches(id, 'connected')
    await works(stage, id, phone)
  })

  test.each([['401'], [undefined]])(
    '%s device_removed: logged out, and only now are credentials erased',
    async code => {
      await using stage = await Stage.open()
      const { id, phone } = await stage.link()
      const error = { conflict: 'device_removed', ...(code && { code }) } as const
      await stage.network.misbehave({ kind: 'stream_error', account: phone, ...error })
      expect((await stage.reaches(id, 'logged_out')).reason).toContain('from the phone')
      await until('the credentials to be gone', async () => (await credentialsOf(stage, id)) === 0)
    },
  )
})

describe.concurrent('a login that fails', () => {
  test.each([
    ['403', /may be banned/],
    ['405', /refused this version.*WHATSAPP_VERSION/],
    ['409', /unknown/],
    ['411', /does not take part/],
  ])('with %s: it stops and says why, keeps its credentials, and comes back on demand', async (reason, words) => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    await stage.network.misbehave({ kind: 'refuse_logins', reason, count: 1 })
    await stage.network.misbehave({ kind: 'cut', account: phone })
    const stopped = await stage.reaches(id, 'stopped')
    expect(stopped.reason).toMatch(words)
    expect(stopped.phone).toBe(phone)
    expect(await credentialsOf(stage, id)).toBe(1)
    await stage.store.connections.requestConnect(id, null)
    await stage.reaches(id, 'connected')
    await works(stage, id, phone)
  })

  test('with 401: logged out', async () => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    await stage.network.misbehave({ kind: 'refuse_logins', reason: '401', count: 1 })
    await stage.network.misbehave({ kind: 'cut', account: phone })
    expect((await stage.reaches(id, 'logged_out')).reason).toContain('from the phone')
    await until('the credentials to be gone', async () => (await credentialsOf(stage, id)) === 0)
  })

  test('with 503: it tries again, after longer pauses', async () => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    await stage.network.misbehave({ kind: 'refuse_logins', reason: '503', count: 1 })
    await stage.network.misbehave({ kind: 'cut', account: phone })
    await until('the pause', async () => /not available right now/.test((await find(stage, id)).reason ?? ''))
    await stage.reaches(id, 'connected')
    await works(stage, id, phone)
  })
})

describe.concurrent('the socket', () => {
  test('cut again and again at login: pauses grow, nothing is lost, and it connects in the end', async () => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    const when = { stanza: 'success', direction: 'out', times: 2 } as const
    await stage.network.misbehave({ kind: 'rule', rule: { when, do: 'cut' } })
    await stage.network.misbehave({ kind: 'cut', account: phone })
    const { id: message } = await stage.accept(id, CONTACT, 'through three cuts')
    await stage.becomes(id, message, 'read')
    expect(await stage.network.inbox(CONTACT)).toHaveLength(1)
    expect(stage.log.filter(line => line.includes('connection.closed')).length).toBeGreaterThanOrEqual(3)
  })

  test('goes by wss: to a simulated network with a self-signed certificate, on loopback', async () => {
    await using stage = await Stage.open({ tls: true })
    expect(stage.network.url).toMatch(/^wss:/)
    const id = await stage.createInstance()
    const { phone } = await stage.network.openAccount(id)
    const linkBy = (qr: string) => stage.network.scanQr(qr, id)
    await stage.connect(id, { network: { kind: 'simulated', url: stage.network.url, linkBy } })
    await stage.store.connections.requestConnect(id, null)
    await stage.reaches(id, 'connected')
    await works(stage, id, phone)
  })

  test('of a second login with the same credentials replaces the first', async () => {
    await using stage = await Stage.open()
    const { id } = await stage.link()
    // Elsewhere they know nothing of our rows.
    const record = await find(stage, id)
    const elsewhere = { ...stage.store.connections, find: async () => record, record: async () => undefined }
    await stage.connect(id, { scan: false, store: { ...stage.store, connections: elsewhere } })
    expect((await stage.reaches(id, 'stopped')).reason).toContain('opened elsewhere')
  })
})

async function find(stage: Stage, id: string): Promise<ConnectionRecord> {
  return (await stage.store.connections.find(id)) as ConnectionRecord
}
