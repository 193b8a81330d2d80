import { expect, test } from 'vitest'
import type { ConnectionRecord } from '../../src/store/connections/connections.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const CONTACT = '5511987654321'

test('an instance shows a QR code with its expiry, and is connected once a phone has scanned it', async () => {
  await using stage = await Stage.open()
  const id = await stage.createInstance()
  const connection = await stage.connect(id, { scan: false })
  expect(connection.isLinking).toBe(false)
  await stage.store.connections.requestConnect(id, null)
  const linking = await stage.reaches(id, 'linking')
  expect(connection.isLinking).toBe(true)
  expect(linking.qr).toMatch(/#.*,.*,.*,/)
  expect(linking.qrExpiresAt).toBeGreaterThan(Date.now())
  const { phone } = await stage.network.scanQr(linking.qr as string)
  expect(await stage.reaches(id, 'connected')).toMatchObject({ phone, qr: null, qrExpiresAt: null, pairingCode: null })
  expect(connection.isLinking).toBe(false)
})

test('an instance shows a pairing code, and is connected once the phone has typed it', async () => {
  await using stage = await Stage.open()
  const id = await stage.createInstance()
  await stage.connect(id, { scan: false })
  await stage.store.connections.requestConnect(id, '5511912345678')
  const { pairingCode, qr } = await until('a code', async () => {
    const record = await stage.store.connections.find(id)
    return record?.pairingCode ? record : null
  })
  expect(pairingCode).toMatch(/^[0-9A-Z]{8}$/)
  expect(qr).toBeNull()
  await stage.network.enterPairingCode(pairingCode as string, '5511912345678')
  expect(await stage.reaches(id, 'connected')).toMatchObject({ phone: '5511912345678', pairingCode: null })
})

test('an abandoned pairing code leaves no state behind: a new request to connect starts clean', async () => {
  await using stage = await Stage.open()
  const id = await stage.createInstance()
  const connection = await stage.connect(id, { scan: false })
  await stage.store.connections.requestConnect(id, '5511912345678')
  await until('a code', async () => (await stage.store.connections.find(id))?.pairingCode)
  await stage.store.connections.requestConnect(id, null)
  const first = await until('a QR code', async () => (await stage.store.connections.find(id))?.qr)
  await stage.stop(connection)
  await stage.connect(id, { scan: false })
  const second = await until('another QR code', async () => {
    const qr = (await stage.store.connections.find(id))?.qr
    return qr !== first && qr
  })
  await stage.network.scanQr(second)
  await stage.reaches(id, 'connected')
})

test('a restart logs in with the stored credentials, without a phone', async () => {
  await using stage = await Stage.open()
  const { id, phone, connection } = await stage.link()
  await stage.stop(connection)
  expect(await stage.store.connections.find(id)).toMatchObject({ state: 'reconnecting', phone })
  await stage.connect(id, { scan: false })
  expect(await stage.reaches(id, 'connected')).toMatchObject({ phone })
  const { id: message } = await stage.accept(id, CONTACT, 'after the restart')
  await stage.becomes(id, message, 'read')
})

test('a second connection with the same credentials replaces the first, which stops and says why', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  // Elsewhere they know nothing of our rows.
  const record = (await stage.store.connections.find(id)) as ConnectionRecord
  const elsewhere = { ...stage.store.connections, find: async () => record, record: async () => undefined }
  await stage.connect(id, { scan: false, store: { ...stage.store, connections: elsewhere } })
  const stopped = await stage.reaches(id, 'stopped')
  expect(stopped.reason).toContain('opened elsewhere')
  await until('the goal to rest', async () => (await stage.store.connections.find(id))?.goal === 'idle')
})

test('the connection says that it is simulated, and refuses a simulated network that is not on loopback', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link()
  expect((await stage.store.connections.find(id))?.reason).toContain('simulated')
  const other = await stage.createInstance()
  await stage.connect(other, { network: { kind: 'simulated', url: 'wss://web.whatsapp.com/ws/chat' } })
  await stage.store.connections.requestConnect(other, null)
  await until('the refusal', () => stage.log.some(line => line.includes('must be on loopback')))
})

test('until WhatsApp has given a code the reason says that it is asked for, and no older code is on show', async () => {
  await using stage = await Stage.open()
  const id = await stage.createInstance()
  const connection = await stage.connect(id, { scan: false })
  stage.line.hold()
  await stage.store.connections.requestConnect(id, null)
  const asking = await until('it to be asked for', async () => {
    const record = await stage.store.connections.find(id)
    return record?.reason.includes('Asking WhatsApp for a code') && record
  })
  expect(asking).toMatchObject({ state: 'unlinked', qr: null })
  stage.line.release()
  const { qr } = await stage.reaches(id, 'linking')
  expect(qr).not.toBeNull()
  await stage.stop(connection)
  stage.line.hold()
  await stage.connect(id, { scan: false })
  await until('the old code to go', async () => (await stage.store.connections.find(id))?.qr === null)
  stage.line.release()
  const next = await until('a new code', async () => (await stage.store.connections.find(id))?.qr)
  await stage.network.scanQr(next)
  await stage.reaches(id, 'connected')
})

test('logged out while linking: there was no number, and one can be linked afterwards', async () => {
  await using stage = await Stage.open()
  const id = await stage.createInstance()
  const connection = await stage.connect(id, { scan: false })
  await stage.store.connections.requestConnect(id, null)
  const { qr } = await stage.reaches(id, 'linking')
  await stage.store.connections.requestLogout(id)
  const { reason, ...ended } = await stage.reaches(id, 'unlinked')
  expect(ended).toMatchObject({ qr: null, phone: null })
  expect(connection.isLinking).toBe(false)
  expect(reason).toContain('No number is linked.')
  await until('the goal to rest', async () => (await stage.store.connections.find(id))?.goal === 'idle')
  await expect(stage.network.scanQr(qr as string)).rejects.toThrow()
  await stage.store.connections.requestConnect(id, null)
  await stage.network.scanQr((await stage.reaches(id, 'linking')).qr as string)
  await stage.reaches(id, 'connected')
})

test('between the scan and the first login it is connecting, also over a restart', async () => {
  await using stage = await Stage.open()
  const id = await stage.createInstance()
  const connection = await stage.connect(id, { scan: false })
  await stage.store.connections.requestConnect(id, null)
  const { qr } = await stage.reaches(id, 'linking')
  const logins = { when: { stanza: 'success', direction: 'out' }, do: 'drop' } as const
  await stage.network.misbehave({ kind: 'rule', rule: logins })
  await stage.network.scanQr(qr as string, id)
  const connecting = await stage.reaches(id, 'connecting')
  expect(connecting).toMatchObject({ qr: null, qrExpiresAt: null })
  expect(connecting.reason).toContain('Logging in for the first time')
  await stage.stop(connection)
  await stage.connect(id, { scan: false })
  await until('another login', () => stage.line.sockets > 0)
  expect((await stage.store.connections.find(id))?.state).toBe('connecting')
  await stage.network.misbehave({ kind: 'clear' })
  stage.line.cut()
  await stage.reaches(id, 'connected')
})

test('let in over the socket that linked it, it is connected over a new one all the same', async () => {
  await using stage = await Stage.open()
  await stage.network.misbehave({ kind: 'no_restart' })
  const { id } = await stage.link({ settings: { messageTtlMs: 86_400_000, queryTimeoutMs: 500 } })
  expect(stage.log.filter(line => line.includes('"code":515'))).toHaveLength(1)
  const { id: message } = await stage.accept(id, '5511987654321', 'hello')
  await stage.becomes(id, message, 'read')
})
