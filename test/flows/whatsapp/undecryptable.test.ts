import type { Action, When } from '@pombal/simulator'
import { expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** One contact sends undecryptable messages; the others must not notice. */

const HOSTILE = '5511987654321'
const OTHER = '5511987650000'
const THIRD = '5511987650001'
const FLOOD = 200
const QUEUED_AFTER = 3
const LATEST = 1_000
/** More than the number of keys that a contact gets without a wait. */
const LARGE_FLOOD = 320
const NEVER_READABLE = 200
const REQUESTS_EACH = 5
/** The number of keys that a contact gets without a wait, and the time until it gets one more. */
const KEYS_AT_ONCE = 256
const KEYS_EVERY_MS = 2_000
/** The number of copies that are requested from the phone for one contact without a wait. */
const COPIES_AT_ONCE = 16
const REFUSAL = { stanza: 'ack', direction: 'in', attrs: { class: 'message' } } as const
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const
/**
 * The longest time that undecryptable messages may take: a multiple of the time of the same number of readable ones a moment
 * before, and a fixed time more for each. They take up to three times as long. Baileys' default, a wait of 250 ms for each, adds
 * five times as much. No load adds that much to the readable ones.
 */
const TIMES_READABLE = 5
const MORE_FOR_EACH_MS = 50
/** Longer than any wait of a test, so that a query without an answer cannot have ended by then. */
const NEVER_TIMES_OUT_MS = 2 * LONG_TEST_WITHIN_MS

async function rule(harness: WhatsappHarness, when: When, action: Action): Promise<number> {
  return (await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })).rule!
}

async function garble(harness: WhatsappHarness, contact: string): Promise<void> {
  await rule(harness, { stanza: 'message', direction: 'out', contact }, 'garble')
}

/** Writes a text as the contact, and waits until it is an event. */
async function arrives(harness: WhatsappHarness, id: string, phone: string, text: string, from = OTHER): Promise<void> {
  await harness.network.writeAs({ from, to: phone, text })
  const arrived = async () => (await receivedTexts(harness, id)).includes(text)
  await until(`"${text}" to be an event`, arrived, LONG_TEST_WITHIN_MS)
}

async function receivedTexts(harness: WhatsappHarness, id: string): Promise<string[]> {
  return (await harness.store.events.listReceived(id, LATEST)).map(({ body }) => JSON.parse(body).data.text)
}

async function tookMs(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

function expectHardlyDelayed(undecryptableMs: number, readableMs: number, messages: number): void {
  const [undecryptable, readable] = [undecryptableMs, readableMs].map(Math.round)
  console.log(
    `behind ${messages} messages: ${undecryptable} ms if they cannot be decrypted, ${readable} ms if they can`,
  )
  expect(undecryptableMs).toBeLessThan(TIMES_READABLE * readableMs + MORE_FOR_EACH_MS * messages)
}

async function applied(harness: WhatsappHarness, rule: number): Promise<number> {
  return (await harness.network.scenario()).rules.find(({ id }) => id === rule)!.applied
}

test('of messages without content, a contact can make Pombal request a limited number from the phone', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  await harness.network.misbehave({ kind: 'phone_copies' })
  const write = (from: string) =>
    harness.network.writeAs({ from, to: phone, text: `without content, of ${from}`, unavailable: true })
  for (let n = 0; n < COPIES_AT_ONCE + 14; n++) await write(HOSTILE)
  await write(OTHER)
  const ofContact = async (from: string) =>
    (await receivedTexts(harness, id)).filter(text => text === `without content, of ${from}`).length
  await until("the other contact's copy", async () => (await ofContact(OTHER)) === 1)
  await until('the copies', async () => (await ofContact(HOSTILE)) >= COPIES_AT_ONCE)
  const refused = harness.log.filter(line => line.includes('message.copy_not_requested')).length
  expect(refused).toBeGreaterThan(0)
  expect(await ofContact(HOSTILE)).toBeLessThanOrEqual(COPIES_AT_ONCE + 14 - refused)
})

test('statuses without content are not requested from the phone', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  await harness.network.misbehave({ kind: 'phone_copies' })
  const status = { from: HOSTILE, to: phone, group: 'status@broadcast', text: 'a status', unavailable: true }
  for (let n = 0; n < COPIES_AT_ONCE; n++) await harness.network.writeAs(status)
  await harness.network.writeAs({ from: HOSTILE, to: phone, text: 'without content', unavailable: true })
  await until('the copy of the message', async () => (await receivedTexts(harness, id)).includes('without content'))
})

test.each(ONE_STORE)(
  'on %s, 200 messages of one contact that cannot be decrypted hardly delay another contact',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    for (const from of [HOSTILE, OTHER]) await arrives(harness, id, phone, `before ${from}`, from)
    const flood = () => harness.network.misbehave({ kind: 'write', from: HOSTILE, to: phone, text: 'x', count: FLOOD })
    const areEvents = async () =>
      (await receivedTexts(harness, id)).filter(text => text.startsWith('x')).length === FLOOD
    const readableMs = await tookMs(async () => {
      await flood()
      await until('the readable messages to be events', areEvents)
      await arrives(harness, id, phone, 'behind readable messages')
    })
    await garble(harness, HOSTILE)
    const requests = await rule(harness, RETRY, 'drop')
    const undecryptableMs = await tookMs(async () => {
      await flood()
      // By then all of them are in Baileys' queue. Earlier, a message of another contact would overtake them.
      await until('the first requests', async () => (await applied(harness, requests)) >= QUEUED_AFTER)
      await arrives(harness, id, phone, 'behind')
    })
    await until('a request for each', async () => (await applied(harness, requests)) >= FLOOD)
    expectHardlyDelayed(undecryptableMs, readableMs, FLOOD)
  },
  LONG_TEST_WITHIN_MS,
)

test.each(ONE_STORE)(
  `on %s, ${LARGE_FLOOD} messages of one contact that can be decrypted only after a request all arrive, and hardly delay other messages`,
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    for (const from of [HOSTILE, OTHER]) await arrives(harness, id, phone, `before ${from}`, from)
    const flood = (texts: readonly string[], undecryptable: boolean) =>
      Promise.all(texts.map(text => harness.network.writeAs({ from: HOSTILE, to: phone, text, undecryptable })))
    const [readable, undecryptable] = ['readable', 'undecryptable'].map(kind =>
      Array.from({ length: LARGE_FLOOD }, (_, n) => `${kind} ${n}`),
    ) as [string[], string[]]
    const readableMs = await tookMs(async () => {
      await flood(readable, false)
      const areEvents = async () => (await receivedTexts(harness, id)).length >= LARGE_FLOOD + 2
      await until('the readable messages to be events', areEvents)
      await arrives(harness, id, phone, 'behind readable messages')
    })
    const arrived = await harness.received(id)
    // Their sender answers only when the other contact's text has arrived, so that only our part is measured.
    const requests = await rule(harness, RETRY, 'hold')
    const refusals = await rule(harness, REFUSAL, 'hold')
    const undecryptableMs = await tookMs(async () => {
      await flood(undecryptable, true)
      await until('the first requests', async () => (await applied(harness, requests)) >= QUEUED_AFTER)
      await arrives(harness, id, phone, 'behind')
    })
    await until('a request for each', async () => (await applied(harness, requests)) >= LARGE_FLOOD)
    expect(await harness.receivedIds(id)).toHaveLength(arrived.length + 1)
    expectHardlyDelayed(undecryptableMs, readableMs, LARGE_FLOOD)
    for (const one of [requests, refusals]) await harness.network.misbehave({ kind: 'remove_rule', id: one })
    await harness.network.misbehave({ kind: 'release' })
    const expected = [...arrived.map(event => event['text']), 'behind', ...undecryptable]
    const areThere = async () => (await harness.receivedIds(id)).length >= expected.length
    await until('all messages to be events', areThere, LONG_TEST_WITHIN_MS)
    const received = (await harness.received(id)).map(event => event['text'])
    expect(new Set(received)).toEqual(new Set(expected))
    expect(received).toHaveLength(expected.length)
  },
  LONG_TEST_WITHIN_MS,
)

test.each(ONE_STORE)(
  'on %s, messages of one contact that can never be decrypted are requested five times each, with a limited number of keys',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    await arrives(harness, id, phone, 'before')
    const nextPreKey = async () => {
      const rows = await harness.store.credentials.get(id, 'creds', ['creds'])
      return JSON.parse(Buffer.from(rows.get('creds')!).toString())['nextPreKeyId'] as number
    }
    const [firstKey, startedAt] = [await nextPreKey(), performance.now()]
    await garble(harness, HOSTILE)
    const requests = await rule(harness, RETRY, { delayMs: 0 })
    await harness.network.misbehave({ kind: 'write', from: HOSTILE, to: phone, text: 'x', count: NEVER_READABLE })
    const isOver = async () => (await applied(harness, requests)) >= NEVER_READABLE * REQUESTS_EACH
    await until('all requests', isOver, LONG_TEST_WITHIN_MS)
    const keys = (await nextPreKey()) - firstKey
    expect(keys).toBeGreaterThan(KEYS_AT_ONCE / 2)
    expect(keys).toBeLessThanOrEqual(KEYS_AT_ONCE + 1 + (performance.now() - startedAt) / KEYS_EVERY_MS)

    await rule(harness, { stanza: 'message', direction: 'out', contact: OTHER, times: 1 }, 'garble')
    await arrives(harness, id, phone, 'asked for')
  },
  LONG_TEST_WITHIN_MS,
)

test.each(ONE_STORE)(
  'on %s, a resend that waits for WhatsApp delays neither undecryptable nor readable messages',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link({
      settings: { messageTtlMs: 86_400_000, queryTimeoutMs: NEVER_TIMES_OUT_MS },
    })
    for (const from of [OTHER, THIRD]) await arrives(harness, id, phone, `before ${from}`, from)
    const { id: sent, whatsappId } = await harness.accept(id, HOSTILE, 'to be asked for again')
    await harness.becomes(id, sent, 'read')
    const queries = await rule(harness, { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } }, 'hold')
    await harness.network.misbehave({ kind: 'ask_again', account: phone, contact: HOSTILE, id: whatsappId })
    await until('the resend to ask for devices', async () => (await applied(harness, queries)) > 0)
    await rule(harness, { stanza: 'message', direction: 'out', contact: THIRD, times: 1 }, 'garble')
    await harness.network.writeAs({ from: THIRD, to: phone, text: 'to be asked for' })
    // The query has no answer yet, and its timeout is longer than this test.
    await arrives(harness, id, phone, 'behind')
    await harness.network.misbehave({ kind: 'clear' })
  },
  LONG_TEST_WITHIN_MS,
)
