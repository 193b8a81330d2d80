import { describe, expect, test } from 'vitest'
import { STORES } from '../database.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const WITH_NINTH = '5511987654321'
const WITHOUT = '551187654321'
const MOVED = '15551230001'
const MOVED_TO = '15551230002'
/** More than an instance keeps in memory for one chat. */
const MANY = 150
const LOOK_UP = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const
const SETTINGS = { messageTtlMs: 86_400_000, ackTimeoutMs: 1_000, queryTimeoutMs: 1_000 }

async function shown(stage: Stage, number: string, count: number): Promise<string[]> {
  const inbox = await until('the phone to show all', async () => {
    const messages = await stage.network.inbox(number)
    return messages.length >= count && messages
  })
  return inbox.map(({ text }) => text)
}

describe.each(STORES)('one person under two spellings, on %s', kind => {
  test.each([
    { found: WITHOUT, first: WITH_NINTH, second: WITHOUT },
    { found: WITH_NINTH, first: WITHOUT, second: WITH_NINTH },
  ])('gets $first before $second, however long its look-up takes', async ({ found, first, second }) => {
    await using stage = await Stage.open({}, kind)
    const { id } = await stage.link()
    await stage.network.misbehave({ kind: 'look_up', number: first, finds: found })
    await stage.network.misbehave({ kind: 'rule', rule: { when: { ...LOOK_UP, nth: 1 }, do: { delayMs: 1_000 } } })
    await stage.accept(id, first, 'first')
    await stage.accept(id, second, 'second')
    expect(await shown(stage, found, 2)).toEqual(['first', 'second'])
  })

  test('gets a long queue in the order accepted, over a restart', async () => {
    await using stage = await Stage.open({}, kind)
    const { id, connection } = await stage.link()
    await stage.network.misbehave({ kind: 'look_up', number: WITH_NINTH, finds: WITHOUT })
    const texts = Array.from({ length: MANY }, (_, n) => `text ${n}`)
    for (const [n, text] of texts.entries()) {
      await stage.accept(id, n % 3 === 0 ? WITH_NINTH : WITHOUT, text)
      if (n === MANY / 3) await stage.stop(connection)
    }
    await stage.connect(id)
    expect(await shown(stage, WITHOUT, MANY)).toEqual(texts)
  })

  test('and under a number that leads elsewhere, gets messages in the order accepted', async () => {
    await using stage = await Stage.open({}, kind)
    const { id, connection } = await stage.link({ settings: SETTINGS })
    await stage.network.misbehave({ kind: 'look_up', number: MOVED, finds: MOVED_TO })
    const { id: known } = await stage.accept(id, MOVED, 'zeroth')
    await stage.becomes(id, known, 'read')
    await stage.stop(connection)
    const lost = { stanza: 'message', direction: 'in', times: 1 } as const
    await stage.network.misbehave({ kind: 'rule', rule: { when: lost, do: 'drop' } })
    await stage.accept(id, MOVED, 'first')
    await stage.accept(id, MOVED_TO, 'second')
    await stage.connect(id, { settings: SETTINGS })
    expect(await shown(stage, MOVED_TO, 3)).toEqual(['zeroth', 'first', 'second'])
  })
})
