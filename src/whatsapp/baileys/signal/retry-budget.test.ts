import { expect, test } from 'vitest'
import { RetryBudget } from './retry-budget.ts'

const message = (id: string, from: string, participant?: string) => ({
  tag: 'message',
  attrs: { id, from, ...(participant && { participant }) },
})

function open() {
  let now = 0
  const budget = new RetryBudget({ burst: 3, refillMs: 1_000, now: () => now })
  let last = 0
  const ask = (from: string, participant?: string) => {
    const id = `M${++last}`
    budget.note(message(id, from, participant))
    return budget.take(id)
  }
  return { budget, ask, pass: (ms: number) => (now += ms) }
}

test('a contact can cause a burst of requests, then one per interval', () => {
  const { ask, pass } = open()
  const contact = '5511987654321:4@s.whatsapp.net'
  expect([1, 2, 3, 4].map(() => ask(contact))).toEqual([true, true, true, false])
  pass(1_000)
  expect([ask(contact), ask(contact)]).toEqual([true, false])
  pass(60_000)
  expect([1, 2, 3, 4].map(() => ask(contact))).toEqual([true, true, true, false])
})

test('contacts do not consume the requests of others, not even in a group', () => {
  const { ask } = open()
  const group = '120363000000000777@g.us'
  for (let n = 0; n < 10; n++) ask(group, '1@lid')
  expect(ask(group, '2@lid')).toBe(true)
  expect(ask('3@s.whatsapp.net')).toBe(true)
})

test('a clock that is set back consumes no requests', () => {
  const { ask, pass } = open()
  ask('1@lid')
  pass(-600_000)
  expect([ask('1@lid'), ask('1@lid'), ask('1@lid')]).toEqual([true, true, false])
})
