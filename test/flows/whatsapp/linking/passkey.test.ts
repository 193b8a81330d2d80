import { expect, test } from 'vitest'
import type { PasskeyRequest } from '../../../../src/domain/connection/passkey.ts'
import type { ConnectionRecord } from '../../../../src/store/connections/connections.ts'
import { noteSecret } from '../../../logs/log-capture.ts'
import { TestPasskey } from '../../../passkey.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

type Play = Extract<Parameters<WhatsappHarness['network']['misbehave']>[0], { kind: 'play_passkey' }>['how']
type Answer = Parameters<TestPasskey['answer']>[1]

const PHONE = '5511912345678'
const SETTINGS = { messageTtlMs: 86_400_000, passkeys: true }
/** Each step then ends after 16 seconds instead of two minutes. */
const HASTY = { ...SETTINGS, queryTimeoutMs: 2_000 }

/** An account with a passkey, and an instance whose code its phone has scanned or typed. */
async function begin(
  harness: WhatsappHarness,
  { by = 'qr', settings = SETTINGS as typeof HASTY | typeof SETTINGS } = {},
) {
  const id = await harness.createInstance()
  const passkey = new TestPasskey()
  const { phone } = await harness.network.openAccount(by === 'qr' ? id : PHONE)
  await harness.network.misbehave({ kind: 'require_passkey', account: phone, credential: passkey.credential })
  const connect = () => harness.connect(id, { scan: false, settings })
  const connection = await connect()
  await requestLink(harness, id, by === 'qr' ? null : phone)
  return { id, phone, passkey, connection, connect }
}

async function requestLink(harness: WhatsappHarness, id: string, phone: string | null): Promise<void> {
  await harness.store.connections.requestConnect(id, phone)
  const code = await until('a code', async () => {
    const record = await harness.store.connections.find(id)
    return phone === null ? record?.qr : record?.pairingCode
  })
  const linked = phone === null ? harness.network.scanQr(code, id) : harness.network.enterPairingCode(code, phone)
  linked.catch(() => undefined)
}

const recordWith = (harness: WhatsappHarness, id: string, what: string, fits: (record: ConnectionRecord) => boolean) =>
  until(what, async () => {
    const record = await harness.store.connections.find(id)
    return record !== null && fits(record) && record
  })

const asked = async (harness: WhatsappHarness, id: string, not?: PasskeyRequest): Promise<PasskeyRequest> => {
  const { passkey } = await recordWith(harness, id, 'WhatsApp to ask for the passkey', record => {
    const request = record.passkey?.request
    return !!request && request.challenge !== not?.challenge
  })
  return passkey!.request!
}

async function assertWith(
  harness: WhatsappHarness,
  id: string,
  passkey: TestPasskey,
  request: PasskeyRequest,
  how?: Answer,
) {
  const assertion = passkey.answer(request, how)
  for (const value of Object.values(assertion.response)) noteSecret(value ?? undefined)
  return harness.store.connections.answerPasskey(id, { stage: 'assertion', assertion })
}

const codeOf = async (harness: WhatsappHarness, id: string) =>
  (await recordWith(harness, id, 'a code to compare', record => record.passkey?.stage === 'code')).passkey!.code

async function shownOnPhone(harness: WhatsappHarness, phone: string) {
  return (await harness.network.misbehave({ kind: 'passkey_code', account: phone })).passkeyCode
}

test.each(['qr', 'code'])('linked by %s, the number asks for its passkey, and is linked with it', async by => {
  await using harness = await WhatsappHarness.open()
  const { id, passkey } = await begin(harness, { by })
  const request = await asked(harness, id)
  const record = (await harness.store.connections.find(id))!
  expect(record).toMatchObject({ state: 'linking', cause: 'passkey_required', qr: null, pairingCode: null })
  expect(record.passkey).toMatchObject({ stage: 'assertion', code: null })
  expect(request).toMatchObject({ rpId: 'whatsapp.com', userVerification: 'required' })
  expect(request.allowCredentials).toEqual([{ id: passkey.credential.id, type: 'public-key' }])
  expect(await assertWith(harness, id, passkey, request)).toBe('accepted')
  const linked = await harness.reaches(id, 'connected')
  expect(linked.passkey).toBeNull()
  const { id: message } = await harness.accept(id, '5511900000001', 'after the passkey')
  await harness.becomes(id, message, 'delivered')
})

test.each<Play>(['no_options', 'repeated', 'early'])('the network plays "%s": the number is linked', async how => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'play_passkey', how, count: 1 })
  const { id, passkey } = await begin(harness)
  await until('the assertion that WhatsApp accepts', async () => {
    const { passkey: step, state } = (await harness.store.connections.find(id))!
    if (step?.request) await assertWith(harness, id, passkey, step.request)
    // An answer to the previous request is refused.
    if (step?.code) await harness.store.connections.answerPasskey(id, { stage: 'code' })
    return state === 'connected'
  })
})

test('after a refused assertion WhatsApp asks again, and the number is linked with a code that both sides show', async () => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'play_passkey', how: 'refused', count: 1 })
  const { id, phone, passkey } = await begin(harness)
  const first = await asked(harness, id)
  await assertWith(harness, id, passkey, first)
  const second = await asked(harness, id, first)
  expect(await harness.store.connections.find(id)).toMatchObject({ state: 'linking', cause: 'passkey_refused' })
  await assertWith(harness, id, passkey, second)
  const code = await codeOf(harness, id)
  expect(code).toMatch(/^[1-9A-HJ-NP-TV-Z]{8}$/)
  expect(await shownOnPhone(harness, phone)).toBe(code)
  expect((await harness.store.connections.find(id))!.cause).toBe('passkey_code')
  expect(await harness.store.connections.answerPasskey(id, { stage: 'code' })).toBe('accepted')
  await harness.reaches(id, 'connected')
})

test.each<[what: string, differs: Answer]>([
  ['made on another page', { origin: 'https://web.whatsapp.example' }],
  ['of another site', { rpId: 'example.com' }],
  ['for another challenge', { challenge: 'AAAA' }],
  ['without the user', { flags: 0x04 }],
  ['without a check of the user', { flags: 0x01 }],
])('an assertion %s is refused three times, then the linking ends', async (_, differs) => {
  await using harness = await WhatsappHarness.open()
  const { id, passkey, connect, connection } = await begin(harness)
  let request: PasskeyRequest | undefined
  for (let tries = 1; tries <= 3; tries++) {
    request = await asked(harness, id, request)
    await assertWith(harness, id, passkey, request, differs)
  }
  const ended = await harness.reaches(id, 'unlinked')
  expect(ended).toMatchObject({ cause: 'passkey_refused', passkey: null, qr: null })
  expect(ended.reason).toContain('did not accept the passkey')
  await restsAndLinks(harness, id, passkey, connection, connect)
})

test('an assertion of another passkey, or one whose counter went back, is refused', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, passkey } = await begin(harness)
  const first = await asked(harness, id)
  await assertWith(harness, id, new TestPasskey(), first)
  const second = await asked(harness, id, first)
  await assertWith(harness, id, passkey, second, { counter: 5 })
  await codeOf(harness, id)
  await harness.store.connections.answerPasskey(id, { stage: 'code' })
  await harness.reaches(id, 'connected')
  await harness.network.unlink((await harness.store.connections.find(id))!.phone!)
  await harness.reaches(id, 'logged_out')
  await requestLink(harness, id, null)
  const third = await asked(harness, id)
  await assertWith(harness, id, passkey, third, { counter: 3 })
  await asked(harness, id, third)
  expect((await harness.store.connections.find(id))!.cause).toBe('passkey_refused')
})

test.concurrent.each<[play: Play, cause: ConnectionRecord['cause'], answers: boolean]>([
  ['expires', 'passkey_expired', false],
  ['silence', 'linking_unfinished', true],
  ['unfinished', 'linking_unfinished', true],
])('the network plays "%s": the linking ends with %s', async (how, cause, answers) => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'play_passkey', how })
  const { id, passkey, connect, connection } = await begin(harness, { settings: HASTY })
  const request = await asked(harness, id)
  if (answers) await assertWith(harness, id, passkey, request)
  const ended = await harness.reaches(id, 'unlinked')
  expect(ended).toMatchObject({ cause, passkey: null, qr: null })
  expect(await assertWith(harness, id, passkey, request)).toBe('not_requested')
  await restsAndLinks(harness, id, passkey, connection, connect)
})

test.concurrent('the codes differ: without a confirmation the linking ends, and the phone refuses if no code is compared', async () => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'play_passkey', how: 'refused', count: 1 })
  const { id, phone, passkey } = await begin(harness, { settings: HASTY })
  const first = await asked(harness, id)
  await assertWith(harness, id, passkey, first)
  const second = await asked(harness, id, first)
  await harness.network.misbehave({ kind: 'play_passkey', how: 'wrong_code' })
  await assertWith(harness, id, passkey, second)
  expect(await codeOf(harness, id)).not.toBe(await shownOnPhone(harness, phone))
  expect(await harness.reaches(id, 'unlinked')).toMatchObject({ cause: 'passkey_expired' })
  await requestLink(harness, id, null)
  const third = await asked(harness, id)
  await assertWith(harness, id, passkey, third)
  // The first answer was accepted this time, so no code is compared, and the phone itself notices the difference.
  expect(await harness.reaches(id, 'unlinked')).toMatchObject({ cause: 'passkey_refused' })
})

test('a logout ends the ceremony', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await begin(harness)
  await asked(harness, id)
  await harness.store.connections.requestLogout(id)
  expect(await harness.reaches(id, 'unlinked')).toMatchObject({ passkey: null, cause: 'never_linked' })
})

test('an answer reaches only the owner and the goal that asked, once, and is encrypted until then', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, passkey, connection } = await begin(harness)
  const request = await asked(harness, id)
  const { connections } = harness.store
  const { goalVersion } = (await connections.find(id))!
  // The connection takes answers only while its step is shown, so this one stays.
  await connection.stop()
  expect(await assertWith(harness, id, passkey, request)).toBe('accepted')
  const lease = await harness.lease(id)
  expect(await connections.takePasskeyAnswer(lease, goalVersion + 1)).toBeNull()
  expect(await connections.takePasskeyAnswer(lease, goalVersion)).toBeNull()
  expect(await assertWith(harness, id, passkey, request)).toBe('accepted')
  expect(await connections.takePasskeyAnswer(lease, goalVersion)).toMatchObject({ stage: 'assertion' })
  expect(await connections.takePasskeyAnswer(lease, goalVersion)).toBeNull()
  expect(await connections.answerPasskey(id, { stage: 'code' })).toBe('not_requested')
  expect(await connections.answerPasskey('inst_unknown00000', { stage: 'code' })).toBe('no_instance')
})

/** The end survives a restart without a new attempt, and the next request links the number. */
async function restsAndLinks(
  harness: WhatsappHarness,
  id: string,
  passkey: TestPasskey,
  connection: Awaited<ReturnType<WhatsappHarness['connect']>>,
  connect: () => Promise<unknown>,
): Promise<void> {
  await until('the goal to become idle', async () => (await harness.store.connections.find(id))?.goal === 'idle')
  const { opened } = harness.line
  await harness.stop(connection)
  await connect()
  expect(harness.line.opened).toBe(opened)
  await harness.network.misbehave({ kind: 'clear' })
  await requestLink(harness, id, null)
  await assertWith(harness, id, passkey, await asked(harness, id))
  await harness.reaches(id, 'connected')
}
