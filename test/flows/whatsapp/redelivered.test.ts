import type { Action, When } from '@pombal/simulator'
import { expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** WhatsApp redelivers messages whose receipts were lost. Their keys are used up, and most have left the journal. */

const STRANGER = '5511987654321'
const ANSWERED = '5511987650000'
const GROUP = '120363000000000777@g.us'
/** More than the number of recorded messages that the journal keeps. */
const TEXTS = 40
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const
const REFUSAL = { stanza: 'ack', direction: 'in', attrs: { class: 'message' } } as const
const RECEIPTS = ['', 'inactive'].map(type => ({ stanza: 'receipt', direction: 'in', attrs: { type } }) as const)
const UNKNOWN_ID = '3A000000000000000000'

async function rule(harness: WhatsappHarness, when: When, action: Action): Promise<number> {
  return (await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })).rule!
}

async function applied(harness: WhatsappHarness, ...rules: number[]): Promise<number> {
  const all = (await harness.network.scenario()).rules
  return rules.reduce((sum, id) => sum + all.find(one => one.id === id)!.applied, 0)
}

/** Stops the connection once all texts of `writers` are events. WhatsApp has no receipt for any of them. */
async function receiveWithoutReceipts(harness: WhatsappHarness, writers: { from: string; group?: string }[]) {
  const { id, phone, connection } = await harness.link()
  await harness.network.joinGroup(GROUP, [STRANGER, ANSWERED, phone])
  const { id: answer } = await harness.accept(id, ANSWERED, 'hello')
  await harness.becomes(id, answer, 'read')
  const lost = await Promise.all(RECEIPTS.map(when => rule(harness, when, 'drop')))
  for (const writer of writers) {
    await harness.network.misbehave({ kind: 'write', to: phone, text: 'x', count: TEXTS, ...writer })
  }
  const total = writers.length * TEXTS
  await until('all events', async () => (await harness.receivedIds(id)).length === total)
  await until('the receipts to be lost', async () => (await applied(harness, ...lost)) >= total)
  await harness.stop(connection)
  for (const one of lost) await harness.network.misbehave({ kind: 'remove_rule', id: one })
  return { id, total }
}

test.each(ONE_STORE)(
  'on %s, messages that are delivered again are acknowledged, and neither refused nor requested',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const writers = [{ from: STRANGER }, { from: ANSWERED }, { from: ANSWERED, group: GROUP }]
    const { id, total } = await receiveWithoutReceipts(harness, writers)
    const receipts = await Promise.all(RECEIPTS.map(when => rule(harness, when, { delayMs: 0 })))
    const refusals = await Promise.all([RETRY, REFUSAL].map(when => rule(harness, when, { delayMs: 0 })))
    await harness.connect(id)
    const over = async () => (await applied(harness, ...receipts, ...refusals)) >= total
    await until('all messages to be acknowledged', over)
    expect(await applied(harness, ...refusals)).toBe(0)
    expect(await harness.receivedIds(id)).toHaveLength(total)
  },
  300_000,
)

test.each(ONE_STORE)(
  'on %s, a message whose key is used and that is not recorded is requested again',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id } = await receiveWithoutReceipts(harness, [{ from: STRANGER }])
    await rule(harness, { stanza: 'message', direction: 'out', times: 1 }, { set: { id: UNKNOWN_ID } })
    const requests = await rule(harness, { ...RETRY, attrs: { type: 'retry', id: UNKNOWN_ID } }, { delayMs: 0 })
    await harness.connect(id)
    await until('the request', async () => (await applied(harness, requests)) > 0)
  },
  300_000,
)
