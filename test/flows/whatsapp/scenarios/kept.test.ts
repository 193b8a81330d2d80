import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { NOT_CAUGHT_UP } from '../../../../src/whatsapp/baileys/link-end.ts'
import { LONG_TEST_WITHIN_MS } from '../../../deadlines.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** What WhatsApp kept for an instance that was offline; docs/whatsapp-situations.md lists these situations. */

const CONTACT = '5511987654321'
const ANOTHER = '5511987650000'
const ANSWER_MS = 3_000
/** Longer than it waits for kept messages before it gives up. */
const PATIENCE_MS = 6 * ANSWER_MS
const SETTINGS = { messageTtlMs: 86_400_000, queryTimeoutMs: ANSWER_MS }
/** The client's requests for kept stanzas, and the network's announcements. */
const REQUESTS = { stanza: 'ib', direction: 'in' } as const
const ANNOUNCEMENTS = { stanza: 'ib', direction: 'out', attrs: { from: 's.whatsapp.net' } } as const

const numbered = (text: string, count: number) => Array.from({ length: count }, (_, index) => `${text} ${index + 1}`)

/** An instance without a connection, and this many texts that the network keeps for it. */
async function openOffline(kept: number, ...rules: readonly (readonly [When, Action])[]) {
  const harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link({ settings: SETTINGS })
  await harness.stop(connection)
  await harness.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'kept', count: kept })
  for (const [when, action] of rules) await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })
  const connect = async (queryTimeoutMs = ANSWER_MS) => {
    await harness.connect(id, { settings: { ...SETTINGS, queryTimeoutMs } })
    await harness.reaches(id, 'connected')
  }
  const textsOf = async (count: number) => {
    await until(`${count} events`, async () => (await harness.receivedIds(id)).length >= count, LONG_TEST_WITHIN_MS)
    return (await harness.received(id)).map(({ text }) => text)
  }
  return { harness, id, phone, connect, textsOf, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
}

describe.concurrent('a network that delivers kept messages only on request', { timeout: LONG_TEST_WITHIN_MS }, () => {
  test.each([0, 3, 320])('delivers all %d, and then new ones', async kept => {
    await using world = await openOffline(kept)
    const { harness, phone, connect, textsOf } = world
    await harness.network.misbehave({ kind: 'batches' })
    await connect()
    await harness.network.writeAs({ from: ANOTHER, to: phone, text: 'new' })
    expect(await textsOf(kept + 1)).toEqual([...numbered('kept', kept), 'new'])
  })

  test('and loses a request gets another one', async () => {
    await using world = await openOffline(150, [{ ...REQUESTS, times: 2 }, 'drop'])
    const { harness, connect, textsOf } = world
    await harness.network.misbehave({ kind: 'batches' })
    await connect()
    expect(await textsOf(150)).toEqual(numbered('kept', 150))
  })

  test('and then does not: the instance logs in again, and shows why', async () => {
    await using world = await openOffline(20, [REQUESTS, 'drop'])
    const { harness, id, connect, textsOf } = world
    await harness.network.misbehave({ kind: 'batches' })
    await connect()
    const { cause, reason } = await harness.reaches(id, 'reconnecting')
    expect(cause).toBe('not_caught_up')
    expect(reason).toMatch(/did not deliver all messages that it had kept. Trying again in \d+ s/)
    const { closes } = await harness.store.connections.findHealth(id, Date.now())
    expect(closes.map(({ code }) => code)).toContain(NOT_CAUGHT_UP)
    const line = harness.log.find(one => one.includes('whatsapp.kept_messages_withheld'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ instanceId: id, announced: 20, arrived: 5 })
    await harness.network.misbehave({ kind: 'clear' })
    expect(await textsOf(20)).toEqual(numbered('kept', 20))
    await harness.reaches(id, 'connected')
  })

  test('and withholds them at each login: the instance soon stays connected and sends', async () => {
    await using world = await openOffline(20, [REQUESTS, 'drop'])
    const { harness, id, connect, textsOf } = world
    await harness.network.misbehave({ kind: 'batches' })
    await connect(ANSWER_MS / 2)
    const withheld = () => harness.log.filter(one => one.includes('whatsapp.kept_messages_withheld'))
    await until('a third warning', () => withheld().length === 3, LONG_TEST_WITHIN_MS)
    expect(JSON.parse(withheld()[2] ?? '{}')).toMatchObject({ effect: expect.stringContaining('only sends') })
    const { opened } = harness.line
    const { id: messageId } = await harness.accept(id, CONTACT, 'an offer')
    await harness.becomes(id, messageId, 'sent')
    await harness.network.misbehave({ kind: 'clear' })
    expect(await textsOf(20)).toEqual(numbered('kept', 20))
    expect(harness.line.opened).toBe(opened)
  })
})

describe.concurrent('a network that never says that it has delivered all', { timeout: LONG_TEST_WITHIN_MS }, () => {
  test.each([
    ['all that it announced, and nothing new', 3, null],
    ['less than it announced, and a new message', 4, 'message'],
    ['less than it announced, and a new receipt', 4, 'receipt'],
  ])('but delivers %s, keeps the connection', async (_, announced, life) => {
    await using world = await openOffline(3, [ANNOUNCEMENTS, 'drop'])
    const { harness, id, phone, connect, textsOf } = world
    await connect()
    expect(await textsOf(3)).toEqual(numbered('kept', 3))
    const { opened } = harness.line
    const preview = { tag: 'ib', content: [{ tag: 'offline_preview', attrs: { count: announced.toString() } }] }
    await harness.network.misbehave({ kind: 'stanza', account: phone, stanza: preview })
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: REQUESTS, do: { delayMs: 0 } } })
    const startedAt = performance.now()
    if (life === 'message') await harness.network.writeAs({ from: ANOTHER, to: phone, text: 'new' })
    if (life === 'receipt') {
      const { id: messageId } = await harness.accept(id, CONTACT, 'a question')
      await harness.becomes(id, messageId, 'delivered')
    }
    const requests = async () => (await harness.network.scenario()).rules.find(one => one.id === rule)?.fitted ?? 0
    await until('a repeated request', async () => (await requests()) > 2)
    await until('the end of its patience', () => performance.now() > startedAt + PATIENCE_MS)
    expect(await textsOf(3)).toHaveLength(life === 'message' ? 4 : 3)
    expect((await harness.store.connections.find(id))?.state).toBe('connected')
    expect(harness.line.opened).toBe(opened)
  })
})

/** WhatsApp may withhold the messages after a stanza that was acknowledged with an error. */
test.concurrent('posts of newsletters and undecryptable statuses are acknowledged without an error', async () => {
  await using world = await openOffline(1)
  const { harness, phone, connect, textsOf } = world
  const status = { from: ANOTHER, to: phone, group: 'status@broadcast', text: 'a status', undecryptable: true }
  await harness.network.writeAs(status)
  const countAcks = async (attrs: Record<string, string>) => {
    const when = { stanza: 'ack', direction: 'in', attrs: { class: 'message', ...attrs } } as const
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
    return async () => (await harness.network.scenario()).rules.find(one => one.id === rule)?.fitted
  }
  const withError = await countAcks({ error: '500' })
  const plain = await countAcks({ error: '' })
  await connect()
  expect(await textsOf(1)).toEqual(['kept 1'])
  await until('the kept status to be acknowledged', async () => (await plain()) === 1)
  await harness.network.writeAs(status)
  await until('the status to be acknowledged', async () => (await plain()) === 2)
  const attrs = { from: '120363000000000123@newsletter', id: 'P1', type: 'text', t: '1700000000', server_id: '101' }
  const post = { tag: 'message', attrs, content: [{ tag: 'plaintext', content: 'x' }] }
  await harness.network.misbehave({ kind: 'stanza', account: phone, stanza: post })
  await until('the post to be acknowledged', async () => (await plain()) === 3)
  await harness.network.writeAs({ from: CONTACT, to: phone, text: 'new' })
  expect(await textsOf(2)).toEqual(['kept 1', 'new'])
  expect(await withError()).toBe(0)
})
