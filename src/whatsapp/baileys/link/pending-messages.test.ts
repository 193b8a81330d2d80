import { EventEmitter } from 'node:events'
import type { BinaryNode, WASocket } from 'baileys'
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { LibraryCalls } from '../library-scope.ts'
import { createRetryBudgets } from '../signal/retry-requests.ts'
import { PendingMessages } from './pending-messages.ts'

/** A link gives up after four times as long. */
const ANSWER_MS = 100
const HOUR_MS = 3_600_000
const WITHIN_MS = 10_000

const until = (isSo: () => boolean) => vi.waitUntil(isSo, WITHIN_MS)

function openNumber() {
  let now = 0
  const { logins } = createRetryBudgets(() => now)
  const lines: { effect: string }[] = []
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  /** A login at which WhatsApp announces 20 stanzas and delivers none. */
  const logIn = () => {
    const ws = new EventEmitter()
    const link = { requests: 0, isClosed: false, calls: new LibraryCalls(logger, () => undefined) }
    const sendNode = async () => void link.requests++
    const onStalled = () => {
      link.isClosed = true
    }
    const socket = { ws, ev: new EventEmitter(), sendNode } as unknown as WASocket
    new PendingMessages(socket, { answerMs: ANSWER_MS, calls: link.calls, logger, logins, onStalled })
    const content: BinaryNode[] = [{ tag: 'offline_preview', attrs: { count: '20' } }]
    ws.emit('CB:ib,,offline_preview', { tag: 'ib', attrs: {}, content })
    return link
  }
  return { logIn, lines, pass: (ms: number) => (now += ms) }
}

test('a number logs in twice, and then once an hour, while WhatsApp withholds its messages', {
  timeout: 3 * WITHIN_MS,
}, async () => {
  const { logIn, lines, pass } = openNumber()
  for (const _ of [1, 2]) {
    const link = logIn()
    await until(() => link.isClosed)
  }
  const link = logIn()
  await until(() => lines.length === 3)
  const { requests } = link
  await until(() => link.requests >= requests + 2)
  expect(link.isClosed).toBe(false)
  expect(lines.map(({ effect }) => effect.includes('only sends'))).toEqual([false, false, true])
  pass(HOUR_MS)
  await until(() => link.isClosed)
  expect(lines).toHaveLength(4)
  const next = logIn()
  await until(() => lines.length === 5)
  expect(next.isClosed).toBe(false)
  next.calls.end()
})
