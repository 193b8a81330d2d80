import { describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const WITH_NINTH = '5511987654321'
const WITHOUT = '551187654321'
const MOVED = '15551230001'
const MOVED_TO = '15551230002'
/** More messages than an instance keeps in memory for one chat. */
const MANY = 150
const LOOK_UP = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const
const SETTINGS = { messageTtlMs: 86_400_000, ackTimeoutMs: 1_000, queryTimeoutMs: 1_000 }

async function shown(harness: WhatsappHarness, number: string, count: number): Promise<string[]> {
  const inbox = await until('the phone to show all', async () => {
    const messages = await harness.network.inbox(number)
    return messages.length >= count && messages
  })
  return inbox.map(({ text }) => text)
}

describe.each(ONE_STORE)('one person under two spellings, on %s', kind => {
  test.each([
    { found: WITHOUT, first: WITH_NINTH, second: WITHOUT },
    { found: WITH_NINTH, first: WITHOUT, second: WITH_NINTH },
  ])('gets $first before $second, however long its look-up takes', async ({ found, first, second }) => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id } = await harness.link()
    await harness.network.misbehave({ kind: 'look_up', number: first, finds: found })
    await harness.network.misbehave({ kind: 'rule', rule: { when: { ...LOOK_UP, nth: 1 }, do: { delayMs: 1_000 } } })
    await harness.accept(id, first, 'first')
    await harness.accept(id, second, 'second')
    expect(await shown(harness, found, 2)).toEqual(['first', 'second'])
  })

  test('gets a long queue in the order accepted, across a restart', async () => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, connection } = await harness.link()
    await harness.network.misbehave({ kind: 'look_up', number: WITH_NINTH, finds: WITHOUT })
    const texts = Array.from({ length: MANY }, (_, n) => `text ${n}`)
    for (const [n, text] of texts.entries()) {
      await harness.accept(id, n % 3 === 0 ? WITH_NINTH : WITHOUT, text)
      if (n === MANY / 3) await harness.stop(connection)
    }
    await harness.connect(id)
    expect(await shown(harness, WITHOUT, MANY)).toEqual(texts)
  })

  test('and under a number that WhatsApp maps to it, gets messages in the order accepted', async () => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, connection } = await harness.link({ settings: SETTINGS })
    await harness.network.misbehave({ kind: 'look_up', number: MOVED, finds: MOVED_TO })
    const { id: known } = await harness.accept(id, MOVED, 'zeroth')
    await harness.becomes(id, known, 'read')
    await harness.stop(connection)
    const lost = { stanza: 'message', direction: 'in', times: 1 } as const
    await harness.network.misbehave({ kind: 'rule', rule: { when: lost, do: 'drop' } })
    await harness.accept(id, MOVED, 'first')
    await harness.accept(id, MOVED_TO, 'second')
    await harness.connect(id, { settings: SETTINGS })
    expect(await shown(harness, MOVED_TO, 3)).toEqual(['zeroth', 'first', 'second'])
  })
})
