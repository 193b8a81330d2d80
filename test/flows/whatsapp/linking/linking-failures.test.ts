import { expect, test } from 'vitest'
import type { ConnectionCause } from '../../../../src/domain/connection/connection.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

type How = Extract<Parameters<WhatsappHarness['network']['misbehave']>[0], { kind: 'fail_linking' }>['how']

const PHONE = '5511912345678'
const SETTINGS = { messageTtlMs: 86_400_000, queryTimeoutMs: 500 }

/** Connects a new instance without a phone that scans by itself. */
async function startLinking(harness: WhatsappHarness, phone: string | null) {
  const id = await harness.createInstance()
  const connection = await harness.connect(id, { scan: false, settings: SETTINGS })
  await harness.store.connections.requestConnect(id, phone)
  return { id, connection }
}

const codeOf = (harness: WhatsappHarness, id: string, not: string | null = null) =>
  until('a code', async () => {
    const record = await harness.store.connections.find(id)
    const code = record?.pairingCode ?? record?.qr
    return code !== not && code
  })

/** A phone scans or types the code. The simulated phone shows an error if the linking fails. */
async function answer(harness: WhatsappHarness, id: string, code: string, phone: string | null): Promise<void> {
  await (phone ? harness.network.enterPairingCode(code, phone) : harness.network.scanQr(code, id)).catch(
    () => undefined,
  )
}

/** The state survives a restart without a new attempt, and the next request links the number. */
async function linksInTheEnd(harness: WhatsappHarness, id: string, cause: ConnectionCause): Promise<void> {
  const { opened } = harness.line
  await harness.connect(id, { scan: false, settings: SETTINGS })
  expect(await harness.store.connections.find(id)).toMatchObject({ cause, goal: 'idle' })
  expect(harness.line.opened).toBe(opened)
  await harness.network.misbehave({ kind: 'clear' })
  await harness.store.connections.requestConnect(id, null)
  await scans(harness, id)
  await harness.reaches(id, 'connected')
}

/** On a busy machine the code may belong to a socket that has just ended. A person then scans the next one. */
async function scans(harness: WhatsappHarness, id: string): Promise<void> {
  await until('a phone to scan the code', async () => {
    const code = await codeOf(harness, id)
    return harness.network.scanQr(code, id).then(
      () => true,
      () => false,
    )
  })
}

test.each<[situation: string, how: How, phone: string | null, cause: ConnectionCause, words: string]>([
  ['a passkey is wanted after the scan', 'passkey', null, 'passkey_required', 'passkey'],
  ['a passkey is wanted after the pairing code', 'passkey', PHONE, 'passkey_required', 'passkey'],
  ['the phone signs with another secret', 'bad_signature', null, 'linking_unfinished', 'did not complete'],
  ['WhatsApp answers the scan with 401', 'unauthorized', null, 'linking_unfinished', 'did not complete'],
  ['the phone goes offline after the pairing code', 'phone_offline', PHONE, 'phone_offline', 'is online'],
  ['the account has too many devices', 'device_limit', PHONE, 'device_limit', 'Remove one'],
])('%s: the codes end, with cause and remedy', async (_, how, phone, cause, words) => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'fail_linking', how })
  const { id, connection } = await startLinking(harness, phone)
  await answer(harness, id, await codeOf(harness, id), phone)
  const failed = await until('the cause', async () => {
    const record = await harness.store.connections.find(id)
    return record?.cause === cause && record.goal === 'idle' && record
  })
  expect(failed).toMatchObject({ state: 'unlinked', qr: null, pairingCode: null })
  expect(failed.reason).toContain(words)
  await harness.stop(connection)
  await linksInTheEnd(harness, id, cause)
})

test.each<[situation: string, how: How, phone: string | null, cause: ConnectionCause, words: string]>([
  ['the version is refused', 'refuse_version', null, 'version_refused', 'WHATSAPP_VERSION'],
  ['the device is refused a QR code', 'refuse_device', null, 'identity_rejected', 'WHATSAPP_DEVICE'],
  ['the device is refused a pairing code', 'refuse_code', PHONE, 'identity_rejected', 'WHATSAPP_DEVICE'],
])('%s: no code is shown, and the reason names the setting', async (_, how, phone, cause, words) => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'fail_linking', how })
  const { id, connection } = await startLinking(harness, phone)
  const failed = await until('the cause', async () => {
    const record = await harness.store.connections.find(id)
    return record?.cause === cause && record.goal === 'idle' && record
  })
  expect(failed).toMatchObject({ state: 'unlinked', qr: null, pairingCode: null })
  expect(failed.reason).toContain(words)
  await harness.stop(connection)
  await linksInTheEnd(harness, id, cause)
})

test('one connection that is cut before a code is not taken for a refused device', async () => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'fail_linking', how: 'refuse_device', count: 1 })
  const { id } = await startLinking(harness, null)
  await scans(harness, id)
  await harness.reaches(id, 'connected')
})

test.each<[string, string | null]>([
  ['QR code', null],
  ['pairing code', PHONE],
])('WhatsApp asks for a new %s: it is shown with the reason, and links the number', async (_, phone) => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'fail_linking', how: 'refresh', count: 1 })
  const { id } = await startLinking(harness, phone)
  const first = await codeOf(harness, id)
  await answer(harness, id, first, phone)
  const second = await codeOf(harness, id, first)
  const { cause, state } = (await harness.store.connections.find(id))!
  expect({ cause, state }).toEqual({ cause: 'new_code_asked', state: 'linking' })
  await answer(harness, id, second, phone)
  await harness.reaches(id, 'connected')
})

test('WhatsApp keeps asking for new codes: after the third the codes end', async () => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'fail_linking', how: 'refresh' })
  const { id, connection } = await startLinking(harness, null)
  let code: string | null = null
  for (let scans = 1; scans <= 4; scans++) {
    code = await codeOf(harness, id, code)
    await answer(harness, id, code, null)
  }
  const { reason } = await harness.reaches(id, 'unlinked')
  expect(reason).toContain('did not complete')
  await until('the goal to become idle', async () => (await harness.store.connections.find(id))?.goal === 'idle')
  await harness.stop(connection)
  await linksInTheEnd(harness, id, 'linking_unfinished')
})

test('the first login after linking is refused with 401: logged out, because the linking was not completed', async () => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'refuse_logins', reason: '401', count: 1 })
  const { id } = await startLinking(harness, null)
  await harness.network.scanQr(await codeOf(harness, id), id)
  const { cause, reason } = await harness.reaches(id, 'logged_out')
  expect({ cause, reason }).toMatchObject({
    cause: 'linking_unfinished',
    reason: expect.stringContaining('did not complete'),
  })
})

test('an instance that was never linked does not count as linked while its connection is switched off', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  await harness.connect(id, { network: { kind: 'none', cause: 'sandbox_off', reason: 'Switched off.' } })
  await harness.store.connections.requestConnect(id, null)
  await until('the cause', async () => (await harness.store.connections.find(id))?.cause === 'sandbox_off')
  expect(await harness.store.connections.find(id)).toMatchObject({ state: 'unlinked', goal: 'online' })
})
