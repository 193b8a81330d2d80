import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { CallPolicy } from '../../domain/connection/incoming-call.ts'
import type { ConnectionRecord } from '../../store/connections/connections.ts'
import type { AcceptOutcome, NewMessage } from '../../store/messages/messages.ts'
import { type AnsweringOptions, answerCall } from './answer-call.ts'

const HOUR = 3_600_000
const NOW = 100 * HOUR
const CALL = { id: 'C1', from: '5511987654321', isGroup: false, at: NOW - 1_000 }

function world(calls: CallPolicy, outcomes: AcceptOutcome['kind'][] = []) {
  const queued: NewMessage[] = []
  let clock = NOW
  const store = {
    connections: { find: async () => ({ calls }) as ConnectionRecord },
    messages: {
      async accept(message: NewMessage) {
        queued.push(message)
        // Each attempt takes a minute.
        clock += 60_000
        return { kind: outcomes.shift() ?? 'accepted', id: message.id } as AcceptOutcome
      },
    },
  }
  const options = {
    lease: { instanceId: 'inst_1' },
    store,
    logger: pino({ level: 'silent' }),
    now: () => clock,
  } as unknown as AnsweringOptions
  return {
    queued,
    answer: (call: object = {}) => answerCall(options, { ...CALL, ...call }, new AbortController().signal),
  }
}

describe('a call', () => {
  test('that is older than 5 minutes is left alone', async () => {
    const { answer, queued } = world({ reject: true, text: 'no' })
    expect(await answer({ at: NOW - 5 * 60_000 - 1 })).toBe(false)
    expect(queued).toEqual([])
  })

  test('has the same key when repeated within the hour; another hour, caller or text has another key', async () => {
    const { answer, queued } = world({ reject: true, text: 'no' })
    for (const call of [{}, { id: 'C2', at: NOW - 2_000 }, { at: NOW }, { from: '5511987654322' }]) await answer(call)
    const other = world({ reject: true, text: 'other' })
    await other.answer()
    const [first, again, nextHour, otherCaller] = queued.map(({ idempotency }) => idempotency?.key)
    expect(again).toBe(first)
    const keys = [first, nextHour, otherCaller, other.queued[0]?.idempotency?.key]
    expect(new Set(keys).size).toBe(4)
  })

  test('that arrives before the connection is recorded waits for it, but not forever', async () => {
    const early = world({ reject: true, text: 'no' }, ['not_connected', 'not_connected'])
    expect(await early.answer()).toBe(true)
    expect(early.queued).toHaveLength(3)
    const never = world({ reject: true, text: 'no' }, Array(100).fill('not_connected'))
    expect(await never.answer()).toBe(true)
    expect(never.queued.length).toBeLessThan(7)
  })
})
