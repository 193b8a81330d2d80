import fc from 'fast-check'
import { expect, it } from 'vitest'
import { lidJid, pnJid } from '../addresses.ts'
import { Agenda } from '../server/agenda.ts'
import type { Connection } from '../server/connection.ts'
import { type Node, node } from '../wire/nodes.ts'
import { parseOrder } from './parse-order.ts'
import type { Rule } from './rule.ts'
import { Scenario } from './scenario.ts'

const CONTACT = '5511999990001'

/** A scenario, and a connection that records the stanzas that pass. */
function stage(...rules: Rule[]) {
  const scenario = new Scenario(new Agenda())
  for (const rule of rules) scenario.addRule(rule)
  const written: Node[] = []
  const accepted: Node[] = []
  let closes = 0
  const connection = {
    phone: '88800000000001',
    write: (stanza: Node) => void written.push(stanza),
    accept: async (stanza: Node) => void accepted.push(stanza),
    enqueue: (work: () => Promise<void>) => void work(),
    close: () => void closes++,
  } as unknown as Connection
  return { scenario, connection, written, accepted, closes: () => closes }
}

const message = (id: string) => node('message', { id, from: lidJid(CONTACT), sender_pn: pnJid(CONTACT) })
const ids = (stanzas: Node[]) => stanzas.map(({ attrs }) => attrs['id'])

it('a rule applies only to stanzas that match all of its conditions', () => {
  const when = { stanza: 'message', direction: 'out', account: '88800000000001', contact: CONTACT, attrs: { type: '' } }
  fc.assert(
    fc.property(fc.constantFrom('none', ...Object.keys(when)), differs => {
      const other = { stanza: 'receipt', direction: 'in', account: '1234567', contact: '1234567', attrs: { type: 'x' } }
      const changed = { ...when, ...(differs !== 'none' && { [differs]: other[differs as keyof typeof other] }) }
      const { scenario, connection, written } = stage({ when: changed as Rule['when'], do: 'drop' })
      scenario.leave(connection, message('1'))
      expect(ids(written)).toEqual(differs === 'none' ? [] : ['1'])
    }),
  )
})

it('`nth` and `times` count only matching stanzas', () => {
  const { scenario, connection, written } = stage(
    { when: { nth: 2 }, do: 'drop' },
    { when: { times: 1 }, do: 'double' },
  )
  for (const id of ['1', '2', '3']) scenario.leave(connection, message(id))
  expect(ids(written)).toEqual(['1', '1', '3'])
  expect(scenario.state().rules).toMatchObject([
    { fitted: 3, applied: 1 },
    { fitted: 2, applied: 1 },
  ])
})

it('held stanzas are released in order, one by one or all at once, and are not held again', async () => {
  const { scenario, connection, written, accepted } = stage({ when: {}, do: 'hold' })
  for (const id of ['1', '2', '3']) scenario.leave(connection, message(id))
  await scenario.arrive(connection, message('4'))
  expect(scenario.state().held.map(({ direction, attrs }) => [direction, attrs['id']])).toEqual([
    ['out', '1'],
    ['out', '2'],
    ['out', '3'],
    ['in', '4'],
  ])
  expect(scenario.release(1)).toBe(1)
  expect(ids(written)).toEqual(['1'])
  scenario.clear()
  expect(ids(written)).toEqual(['1', '2', '3'])
  expect(ids(accepted)).toEqual(['4'])
  expect(scenario.isSet).toBe(false)
})

it('the same seed gives the same random choices', () => {
  const run = (seed: number) => {
    const { scenario, connection, written } = stage({ when: { probability: 0.5 }, do: 'drop' })
    scenario.setSeed(seed)
    for (let n = 0; n < 64; n++) scenario.leave(connection, message(`${n}`))
    return ids(written)
  }
  for (const seed of [0, 1, 7, 2 ** 31, 2 ** 40]) expect(run(seed)).toEqual(run(seed))
  expect(run(1)).not.toEqual(run(2))
  expect(run(1).length).toBeGreaterThan(16)
})

it('a refused message is answered with the error and not processed', async () => {
  const { scenario, connection, written, accepted } = stage({ when: { direction: 'in' }, do: { error: '463' } })
  await scenario.arrive(connection, node('message', { id: '1', to: pnJid(CONTACT) }))
  expect(accepted).toEqual([])
  expect(written).toEqual([node('ack', { class: 'message', id: '1', from: pnJid(CONTACT), error: '463' })])
})

it('the sender can be named by number or by LID, with or without the other address', () => {
  const { scenario, connection, written } = stage(
    { when: { nth: 1 }, do: { address: 'pn' } },
    { when: { nth: 2 }, do: { address: 'lid', alternate: false } },
  )
  scenario.leave(connection, message('1'))
  scenario.leave(connection, message('2'))
  expect(written[0]!.attrs).toEqual({ id: '1', from: pnJid(CONTACT), sender_lid: lidJid(CONTACT) })
  expect(written[1]!.attrs).toEqual({ id: '2', from: lidJid(CONTACT) })
})

it('an invalid order is refused, and the error names the field', () => {
  const nonsense = [
    null,
    [],
    {},
    { kind: 'toString' },
    { kind: 'cut' },
    { kind: 'cut', account: 'x' },
    { kind: 'cut', account: '88800000000001', more: 1 },
    { kind: 'rule', rule: { when: {}, do: 'nonsense' } },
    { kind: 'rule', rule: { when: { nth: 0 }, do: 'drop' } },
    { kind: 'rule', rule: { when: { direction: 'up' }, do: 'drop' } },
    { kind: 'look_up', number: CONTACT },
  ]
  for (const value of nonsense) expect(() => parseOrder(value)).toThrow(/`/)
  fc.assert(
    fc.property(fc.anything(), value => {
      try {
        parseOrder(value)
      } catch (error) {
        expect(error).toMatchObject({ code: 'invalid_argument' })
      }
    }),
  )
})
