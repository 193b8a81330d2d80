import { afterEach, describe, expect, test, vi } from 'vitest'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** WhatsApp does not answer. docs/whatsapp-situations.md lists these situations. */

const KNOWN = '5511987654321'
/** More recipients than an instance sends to concurrently. */
const NEW = Array.from({ length: 40 }, (_, n) => `55119876500${n + 10}`)
const QUERY = { stanza: 'iq', direction: 'in' } as const
const PING = { ...QUERY, attrs: { xmlns: 'w:p' } } as const
const DAY_MS = 86_400_000
const FIRST_QR_MS = 60_000

afterEach(() => vi.restoreAllMocks())

describe.concurrent('WhatsApp answers no query', () => {
  const settings = { messageTtlMs: DAY_MS, queryTimeoutMs: 1_000 }

  test('for a while: known recipients get messages meanwhile, new ones afterwards', async () => {
    await using harness = await WhatsappHarness.open()
    const { id } = await harness.link({ settings })
    const { id: first } = await harness.accept(id, KNOWN, 'before')
    await harness.becomes(id, first, 'read')
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: QUERY, do: 'drop' } })
    const waiting = await Promise.all(NEW.map(number => harness.accept(id, number, 'to somebody new')))
    for (let n = 0; n < 5; n++) {
      const { id: message } = await harness.accept(id, KNOWN, `meanwhile ${n}`)
      await harness.becomes(id, message, 'sent')
    }
    expect((await harness.store.messages.listQueued(id, 100)).map(({ to }) => to)).toEqual(NEW)
    expect((await harness.store.connections.find(id))?.state).toBe('connected')
    await harness.network.misbehave({ kind: 'remove_rule', id: rule! })
    for (const { id: message } of waiting) await harness.becomes(id, message, 'read')
    for (const number of NEW) expect(await harness.network.inbox(number)).toMatchObject([{ copies: 1 }])
  })

  test.each([
    ['the queries get lost', QUERY],
    ['the answers get lost', { stanza: 'iq', direction: 'out', attrs: { type: 'result' } }],
  ] as const)('at login, %s: the instance connects late, and works', async (_, when) => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link({ settings })
    const rule = { when, do: 'drop', forMs: 4_000 } as const
    await harness.network.misbehave({ kind: 'rule', rule })
    await harness.network.misbehave({ kind: 'cut', account: phone })
    await harness.reaches(id, 'reconnecting')
    const { id: message } = await harness.accept(id, KNOWN, 'when you can')
    await harness.becomes(id, message, 'read')
    await harness.reaches(id, 'connected')
  })
})

test.concurrent.each([
  ['does not answer', { ...QUERY, attrs: { xmlns: 'w:sync:app:state' } }, 'drop'],
  ['answers without them', { stanza: 'iq', direction: 'out' }, { without: ['sync'] }],
] as const)('WhatsApp %s when asked for settings of the account: messages still arrive', async (_, when, action) => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link({ settings: { messageTtlMs: DAY_MS, queryTimeoutMs: 300 } })
  const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })
  await harness.network.saveContacts(phone, [{ number: KNOWN, name: 'Ana' }])
  const applied = async () => (await harness.network.scenario()).rules.find(one => one.id === rule)!.applied
  await until('the query', async () => (await applied()) > 0)
  await harness.network.writeAs({ from: KNOWN, to: phone, text: 'undecryptable', undecryptable: true })
  await harness.network.writeAs({ from: KNOWN, to: phone, text: 'readable' })
  await until('both messages', async () => (await harness.receivedIds(id)).length === 2)
})

test.concurrent('WhatsApp is silent: the socket is closed, and a new one works', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link({ settings: { messageTtlMs: DAY_MS, keepAliveMs: 500 } })
  await harness.network.misbehave({ kind: 'rule', rule: { when: PING, do: 'drop' } })
  expect(await harness.firstReason(id, 'reconnecting')).toMatch(/did not answer in time.*again in 1 s/)
  await harness.network.misbehave({ kind: 'clear' })
  await harness.reaches(id, 'connected')
  const { id: message } = await harness.accept(id, KNOWN, 'after the silence')
  await harness.becomes(id, message, 'read')
})

test.concurrent.each([
  ['QR code', null],
  ['pairing code', '5511912345678'],
])('WhatsApp refuses keep-alives while a %s is shown: the number is linked', async (_, phone) => {
  await using harness = await WhatsappHarness.open()
  const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: PING, do: { error: '501' } } })
  const id = await harness.createInstance()
  await harness.connect(id, { scan: false, settings: { messageTtlMs: DAY_MS, keepAliveMs: 300 } })
  await harness.store.connections.requestConnect(id, phone)
  const code = await until('a code', async () => {
    const record = await harness.store.connections.find(id)
    return phone ? record?.pairingCode : record?.qr
  })
  const applied = async () => (await harness.network.scenario()).rules.find(one => one.id === rule)!.applied
  await until('two refusals', async () => (await applied()) > 1)
  await harness.network.misbehave({ kind: 'clear' })
  await (phone ? harness.network.enterPairingCode(code, phone) : harness.network.scanQr(code, id))
  await harness.reaches(id, 'connected')
})

test('no phone scans: the codes expire, and the instance is unlinked until a new one is requested', async () => {
  await using harness = await WhatsappHarness.open()
  await harness.network.misbehave({ kind: 'qr_codes', count: 1 })
  let aheadMs = 0
  const later = globalThis.setTimeout
  // Skips the minute for which a code is shown, for Baileys and for Pombal.
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, delayMs?: number) => {
    if (delayMs !== FIRST_QR_MS) return later(work, delayMs)
    return later(() => {
      aheadMs += FIRST_QR_MS
      work()
    }, 3_000)
  }) as typeof setTimeout)
  const monotonicNow = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => monotonicNow() + aheadMs)
  const id = await harness.createInstance()
  await harness.connect(id, { scan: false, now: () => Date.now() + aheadMs })
  await harness.store.connections.requestConnect(id, null)
  const first = await until('a QR code', async () => (await harness.store.connections.find(id))?.qr)
  const rested = await harness.reaches(id, 'unlinked')
  expect(rested).toMatchObject({ qr: null, qrExpiresAt: null })
  expect(rested.reason).toContain('Nobody linked the number in time')
  vi.restoreAllMocks()
  await harness.store.connections.requestConnect(id, null)
  const second = await until('another QR code', async () => {
    const qr = (await harness.store.connections.find(id))?.qr
    return qr !== first && qr
  })
  await harness.network.scanQr(second, id)
  await harness.reaches(id, 'connected')
})
