import type { Action, When } from '@pombal/simulator'
import { expect, test } from 'vitest'
import { STORES } from '../database.ts'
import { onThisMachine } from '../deadlines.ts'
import { until } from '../until.ts'
import { WhatsappHarness } from './whatsapp-harness.ts'

/** One contact sends undecryptable messages; the others must not notice. */

const HOSTILE = '5511987654321'
const OTHER = '5511987650000'
const THIRD = '5511987650001'
const FLOOD = 200
const QUEUED_AFTER = 3
const LATEST = 1_000
/** More than may be given a key at once. */
const LARGE_FLOOD = 600
/** One before from each contact, and one behind. */
const BESIDES = 3
const NEVER_READABLE = 200
const REQUESTS_EACH = 5
/** The keys that a contact is given at once, and after how long one more. */
const KEYS_AT_ONCE = 256
const KEYS_EVERY_MS = 2_000
const REFUSAL = { stanza: 'ack', direction: 'in', attrs: { class: 'message' } } as const
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const
/** One to three seconds on a busy machine, with the network in the same process; a wait of 250 ms for each message would be 50 s. */
const DELAYED_LESS_THAN_MS = 10_000

async function rule(harness: WhatsappHarness, when: When, action: Action): Promise<number> {
  return (await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })).rule!
}

async function garble(harness: WhatsappHarness, contact: string): Promise<void> {
  await rule(harness, { stanza: 'message', direction: 'out', contact }, 'garble')
}

/** The time until a text of the contact is an event. */
async function timeToEvent(
  harness: WhatsappHarness,
  id: string,
  phone: string,
  text: string,
  from = OTHER,
): Promise<number> {
  const startedAt = performance.now()
  await harness.network.writeAs({ from, to: phone, text })
  const arrived = async () =>
    (await harness.store.events.listReceived(id, LATEST)).some(({ body }) => JSON.parse(body).data.text === text)
  await until(`"${text}" to be an event`, arrived, 120_000)
  return performance.now() - startedAt
}

async function applied(harness: WhatsappHarness, rule: number): Promise<number> {
  return (await harness.network.scenario()).rules.find(({ id }) => id === rule)!.applied
}

test.each(STORES)(
  'on %s, 200 messages of one contact that cannot be decrypted hardly delay another contact',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    for (const from of [HOSTILE, OTHER]) await timeToEvent(harness, id, phone, `before ${from}`, from)
    await garble(harness, HOSTILE)
    const requests = await rule(harness, RETRY, 'drop')
    await harness.network.misbehave({ kind: 'write', from: HOSTILE, to: phone, text: 'x', count: FLOOD })
    // All of them are in Baileys' queue by then; before, a message of another contact would overtake them.
    await until('the first requests', async () => (await applied(harness, requests)) >= QUEUED_AFTER)
    const delayedMs = await timeToEvent(harness, id, phone, 'behind')
    console.log(`behind ${FLOOD} messages that cannot be decrypted: ${Math.round(delayedMs)} ms`)
    expect(delayedMs).toBeLessThan(DELAYED_LESS_THAN_MS)
  },
  300_000,
)

test.each(STORES)(
  'on %s, 600 messages of one contact that can be decrypted once they are asked for all arrive, and hardly delay another',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    for (const from of [HOSTILE, OTHER]) await timeToEvent(harness, id, phone, `before ${from}`, from)
    // Their sender answers only when the other contact's text has arrived, so that only our part is measured.
    const requests = await rule(harness, RETRY, 'hold')
    const refusals = await rule(harness, REFUSAL, 'hold')
    const texts = Array.from({ length: LARGE_FLOOD }, (_, n) => `x ${n}`)
    const written = texts.map(text => ({ from: HOSTILE, to: phone, text, undecryptable: true }))
    await Promise.all(written.map(message => harness.network.writeAs(message)))
    await until('the first requests', async () => (await applied(harness, requests)) >= QUEUED_AFTER)
    const delayedMs = await timeToEvent(harness, id, phone, 'behind')
    console.log(`behind ${LARGE_FLOOD} messages that are asked for: ${Math.round(delayedMs)} ms`)
    expect(delayedMs).toBeLessThan(onThisMachine(DELAYED_LESS_THAN_MS))
    for (const one of [requests, refusals]) await harness.network.misbehave({ kind: 'remove_rule', id: one })
    await harness.network.misbehave({ kind: 'release' })
    const isThere = async () => (await harness.receivedIds(id)).length >= LARGE_FLOOD + BESIDES
    await until('all messages to be events', isThere, 200_000)
    const received = (await harness.received(id)).map(event => event['text'])
    expect(new Set(received)).toEqual(new Set([...texts, 'behind', ...[HOSTILE, OTHER].map(from => `before ${from}`)]))
    expect(received).toHaveLength(LARGE_FLOOD + BESIDES)
  },
  300_000,
)

test.each(STORES)(
  'on %s, messages of one contact that can never be decrypted are asked for five times each, for a limited number of keys',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    await timeToEvent(harness, id, phone, 'before')
    const nextPreKey = async () => {
      const rows = await harness.store.credentials.get(id, 'creds', ['creds'])
      return JSON.parse(Buffer.from(rows.get('creds')!).toString())['nextPreKeyId'] as number
    }
    const [firstKey, startedAt] = [await nextPreKey(), performance.now()]
    await garble(harness, HOSTILE)
    const requests = await rule(harness, RETRY, { delayMs: 0 })
    await harness.network.misbehave({ kind: 'write', from: HOSTILE, to: phone, text: 'x', count: NEVER_READABLE })
    const isOver = async () => (await applied(harness, requests)) >= NEVER_READABLE * REQUESTS_EACH
    await until('all requests', isOver, 200_000)
    const keys = (await nextPreKey()) - firstKey
    expect(keys).toBeGreaterThan(KEYS_AT_ONCE / 2)
    expect(keys).toBeLessThanOrEqual(KEYS_AT_ONCE + 1 + (performance.now() - startedAt) / KEYS_EVERY_MS)

    await rule(harness, { stanza: 'message', direction: 'out', contact: OTHER, times: 1 }, 'garble')
    await timeToEvent(harness, id, phone, 'asked for')
  },
  300_000,
)

test.each(STORES)(
  'on %s, a resend that waits for WhatsApp delays neither undecryptable nor readable messages',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link({ settings: { messageTtlMs: 86_400_000, queryTimeoutMs: 60_000 } })
    for (const from of [OTHER, THIRD]) await timeToEvent(harness, id, phone, `before ${from}`, from)
    const { id: sent, whatsappId } = await harness.accept(id, HOSTILE, 'to be asked for again')
    await harness.becomes(id, sent, 'read')
    const queries = await rule(harness, { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } }, 'hold')
    await harness.network.misbehave({ kind: 'ask_again', account: phone, contact: HOSTILE, id: whatsappId })
    await until('the resend to ask for devices', async () => (await applied(harness, queries)) > 0)
    await rule(harness, { stanza: 'message', direction: 'out', contact: THIRD, times: 1 }, 'garble')
    await harness.network.writeAs({ from: THIRD, to: phone, text: 'to be asked for' })
    expect(await timeToEvent(harness, id, phone, 'behind')).toBeLessThan(30_000)
    await harness.network.misbehave({ kind: 'clear' })
  },
  300_000,
)
