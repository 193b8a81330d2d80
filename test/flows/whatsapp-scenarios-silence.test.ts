import { afterEach, describe, expect, test, vi } from 'vitest'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

/** What happens when WhatsApp says nothing; docs/whatsapp-situations.md lists these. */

const KNOWN = '5511987654321'
/** More than are written to at the same time. */
const NEW = Array.from({ length: 40 }, (_, n) => `55119876500${n + 10}`)
const QUERY = { stanza: 'iq', direction: 'in' } as const
const PING = { ...QUERY, attrs: { xmlns: 'w:p' } } as const
const DAY_MS = 86_400_000
const FIRST_QR_MS = 60_000

afterEach(() => vi.restoreAllMocks())

describe.concurrent('WhatsApp answers no query', () => {
  const settings = { messageTtlMs: DAY_MS, queryTimeoutMs: 1_000 }

  test('for a while: who is known gets messages meanwhile, who is new gets them after it', async () => {
    await using stage = await Stage.open()
    const { id } = await stage.link({ settings })
    const { id: first } = await stage.accept(id, KNOWN, 'before')
    await stage.becomes(id, first, 'read')
    const rule = { when: QUERY, do: 'drop', forMs: 3_000 } as const
    await stage.network.misbehave({ kind: 'rule', rule })
    const waiting = await Promise.all(NEW.map(number => stage.accept(id, number, 'to somebody new')))
    for (let n = 0; n < 5; n++) {
      const { id: message } = await stage.accept(id, KNOWN, `meanwhile ${n}`)
      await stage.becomes(id, message, 'sent')
    }
    expect((await stage.store.messages.listQueued(id, 100)).map(({ to }) => to)).toEqual(NEW)
    expect((await stage.store.connections.find(id))?.state).toBe('connected')
    for (const { id: message } of waiting) await stage.becomes(id, message, 'read')
    for (const number of NEW) expect(await stage.network.inbox(number)).toMatchObject([{ copies: 1 }])
  })

  test.each([
    ['the queries get lost', QUERY],
    ['the answers get lost', { stanza: 'iq', direction: 'out', attrs: { type: 'result' } }],
  ] as const)('at login, %s: it is connected all the same, late, and works', async (_, when) => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link({ settings })
    const rule = { when, do: 'drop', forMs: 4_000 } as const
    await stage.network.misbehave({ kind: 'rule', rule })
    await stage.network.misbehave({ kind: 'cut', account: phone })
    await stage.reaches(id, 'reconnecting')
    const { id: message } = await stage.accept(id, KNOWN, 'when you can')
    await stage.becomes(id, message, 'read')
    await stage.reaches(id, 'connected')
  })
})

test.concurrent('WhatsApp is silent: the socket is ended and a new one works', async () => {
  await using stage = await Stage.open()
  const { id } = await stage.link({ settings: { messageTtlMs: DAY_MS, keepAliveMs: 500 } })
  await stage.network.misbehave({ kind: 'rule', rule: { when: PING, do: 'drop' } })
  expect((await stage.reaches(id, 'reconnecting')).reason).toMatch(/did not answer in time.*again in 1 s/)
  await stage.network.misbehave({ kind: 'clear' })
  await stage.reaches(id, 'connected')
  const { id: message } = await stage.accept(id, KNOWN, 'after the silence')
  await stage.becomes(id, message, 'read')
})

test('no phone scans: the codes run out, and the connection rests until a new one is requested', async () => {
  await using stage = await Stage.open()
  await stage.network.misbehave({ kind: 'qr_codes', count: 1 })
  let aheadMs = 0
  const later = globalThis.setTimeout
  // A code's minute passes at once, for Baileys and for Pombal.
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, delayMs?: number) => {
    if (delayMs !== FIRST_QR_MS) return later(work, delayMs)
    return later(() => {
      aheadMs += FIRST_QR_MS
      work()
    }, 300)
  }) as typeof setTimeout)
  const monotonicNow = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => monotonicNow() + aheadMs)
  const id = await stage.createInstance()
  await stage.connect(id, { scan: false, now: () => Date.now() + aheadMs })
  await stage.store.connections.requestConnect(id, null)
  const first = await until('a QR code', async () => (await stage.store.connections.find(id))?.qr)
  const rested = await stage.reaches(id, 'unlinked')
  expect(rested).toMatchObject({ qr: null, qrExpiresAt: null })
  expect(rested.reason).toContain('Nobody linked the number in time')
  vi.restoreAllMocks()
  await stage.store.connections.requestConnect(id, null)
  const second = await until('another QR code', async () => {
    const qr = (await stage.store.connections.find(id))?.qr
    return qr !== first && qr
  })
  await stage.network.scanQr(second, id)
  await stage.reaches(id, 'connected')
})
