import { expect, test } from 'vitest'
import type { ConnectionRecord } from '../../../../src/store/connections/connections.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'
import { replacing } from '../replacing.ts'

const CONTACT = '5511987654321'

test('an instance shows a QR code with its expiry, and is connected once a phone has scanned it', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const connection = await harness.connect(id, { scan: false })
  expect(connection.isLinking).toBe(false)
  await harness.store.connections.requestConnect(id, null)
  const linking = await harness.reaches(id, 'linking')
  expect(connection.isLinking).toBe(true)
  expect(linking.qr).toMatch(/#.*,.*,.*,/)
  expect(linking.qrExpiresAt).toBeGreaterThan(Date.now())
  const { phone } = await harness.network.scanQr(linking.qr as string)
  expect(await harness.reaches(id, 'connected')).toMatchObject({
    phone,
    qr: null,
    qrExpiresAt: null,
    pairingCode: null,
  })
  expect(connection.isLinking).toBe(false)
})

test('an instance shows a pairing code, and is connected once it is typed on the phone', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  await harness.connect(id, { scan: false })
  await harness.store.connections.requestConnect(id, '5511912345678')
  const { pairingCode, qr } = await until('a code', async () => {
    const record = await harness.store.connections.find(id)
    return record?.pairingCode ? record : null
  })
  expect(pairingCode).toMatch(/^[0-9A-Z]{8}$/)
  expect(qr).toBeNull()
  await harness.network.enterPairingCode(pairingCode as string, '5511912345678')
  expect(await harness.reaches(id, 'connected')).toMatchObject({ phone: '5511912345678', pairingCode: null })
})

test('a request to connect while the phone links does not interrupt the linking', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const { connections, credentials } = harness.store
  const [stored, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let goalChecks = 0
  const store = {
    ...harness.store,
    connections: replacing(connections, {
      find: async instanceId => connections.find(instanceId).finally(() => goalChecks++),
    }),
    credentials: replacing(credentials, {
      set: async (lease, rows) => {
        stored.resolve()
        await released.promise
        return credentials.set(lease, rows)
      },
    }),
  }
  await harness.connect(id, { scan: false, store })
  await connections.requestConnect(id, null)
  const { qr } = await harness.reaches(id, 'linking')
  const scanned = harness.network.scanQr(qr as string)
  await stored.promise
  const before = goalChecks
  await connections.requestConnect(id, null)
  await until('the request to be read', () => goalChecks > before)
  released.resolve()
  const { phone } = await scanned
  expect(await harness.reaches(id, 'connected')).toMatchObject({ phone })
})

test('an abandoned pairing code leaves no state behind: a new request to connect starts clean', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const connection = await harness.connect(id, { scan: false })
  await harness.store.connections.requestConnect(id, '5511912345678')
  await until('a code', async () => (await harness.store.connections.find(id))?.pairingCode)
  await harness.store.connections.requestConnect(id, null)
  const first = await until('a QR code', async () => (await harness.store.connections.find(id))?.qr)
  await harness.stop(connection)
  await harness.connect(id, { scan: false })
  const second = await until('another QR code', async () => {
    const qr = (await harness.store.connections.find(id))?.qr
    return qr !== first && qr
  })
  await harness.network.scanQr(second)
  await harness.reaches(id, 'connected')
})

test('a restart logs in with the stored credentials, without a phone', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  await harness.stop(connection)
  expect(await harness.store.connections.find(id)).toMatchObject({ state: 'reconnecting', phone })
  await harness.connect(id, { scan: false })
  expect(await harness.reaches(id, 'connected')).toMatchObject({ phone })
  const { id: message } = await harness.accept(id, CONTACT, 'after the restart')
  await harness.becomes(id, message, 'read')
})

test('a second connection with the same credentials replaces the first, which stops and says why', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  // The second connection stands for another program, which does not read or write our rows.
  const record = (await harness.store.connections.find(id)) as ConnectionRecord
  const elsewhere = { ...harness.store.connections, find: async () => record, record: async () => undefined }
  await harness.connect(id, { scan: false, store: { ...harness.store, connections: elsewhere } })
  const stopped = await harness.reaches(id, 'stopped')
  expect(stopped.reason).toContain('opened elsewhere')
  await until('the goal to become idle', async () => (await harness.store.connections.find(id))?.goal === 'idle')
})

test('the connection says that it is simulated, and refuses a simulated network that is not on loopback', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  expect((await harness.store.connections.find(id))?.reason).toContain('simulated')
  const other = await harness.createInstance()
  await harness.connect(other, { network: { kind: 'simulated', url: 'wss://web.whatsapp.com/ws/chat' } })
  await harness.store.connections.requestConnect(other, null)
  await until('the refusal', () => harness.log.some(line => line.includes('must be on loopback')))
})

test('until WhatsApp supplies a code the reason says that one was requested, and no older code is shown', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const connection = await harness.connect(id, { scan: false })
  harness.line.hold()
  await harness.store.connections.requestConnect(id, null)
  const asking = await until('it to be asked for', async () => {
    const record = await harness.store.connections.find(id)
    return record?.reason.includes('Asking WhatsApp for a code') && record
  })
  expect(asking).toMatchObject({ state: 'unlinked', qr: null })
  harness.line.release()
  const { qr } = await harness.reaches(id, 'linking')
  expect(qr).not.toBeNull()
  await harness.stop(connection)
  harness.line.hold()
  await harness.connect(id, { scan: false })
  await until('the old code to go', async () => (await harness.store.connections.find(id))?.qr === null)
  harness.line.release()
  const next = await until('a new code', async () => (await harness.store.connections.find(id))?.qr)
  await harness.network.scanQr(next)
  await harness.reaches(id, 'connected')
})

test('a logout while linking leaves it unlinked, and a number can be linked afterwards', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const connection = await harness.connect(id, { scan: false })
  await harness.store.connections.requestConnect(id, null)
  const { qr } = await harness.reaches(id, 'linking')
  await harness.store.connections.requestLogout(id)
  const { reason, ...ended } = await harness.reaches(id, 'unlinked')
  expect(ended).toMatchObject({ qr: null, phone: null })
  expect(connection.isLinking).toBe(false)
  expect(reason).toContain('No number is linked.')
  await until('the goal to become idle', async () => (await harness.store.connections.find(id))?.goal === 'idle')
  await expect(harness.network.scanQr(qr as string)).rejects.toThrow()
  await harness.store.connections.requestConnect(id, null)
  await harness.network.scanQr((await harness.reaches(id, 'linking')).qr as string)
  await harness.reaches(id, 'connected')
})

test('between the scan and the first login the instance is connecting, across a restart too', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const connection = await harness.connect(id, { scan: false })
  await harness.store.connections.requestConnect(id, null)
  const { qr } = await harness.reaches(id, 'linking')
  const logins = { when: { stanza: 'success', direction: 'out' }, do: 'drop' } as const
  await harness.network.misbehave({ kind: 'rule', rule: logins })
  await harness.network.scanQr(qr as string, id)
  const connecting = await harness.reaches(id, 'connecting')
  expect(connecting).toMatchObject({ qr: null, qrExpiresAt: null })
  expect(connecting.reason).toContain('Logging in for the first time')
  await harness.stop(connection)
  await harness.connect(id, { scan: false })
  await until('another login', () => harness.line.sockets > 0)
  expect((await harness.store.connections.find(id))?.state).toBe('connecting')
  await harness.network.misbehave({ kind: 'clear' })
  harness.line.cut()
  await harness.reaches(id, 'connected')
})

test('an instance that may log in over the linking socket still connects over a new one', async () => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'no_restart' })
  const { id } = await harness.link({ settings: { messageTtlMs: 86_400_000, queryTimeoutMs: 500 } })
  expect(harness.log.filter(line => line.includes('"code":515'))).toHaveLength(1)
  const { id: message } = await harness.accept(id, '5511987654321', 'hello')
  await harness.becomes(id, message, 'read')
})
