import type { FastifyRequest } from 'fastify'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { PanelSession } from '../../../store/sessions/sessions.ts'
import type { ApiContext } from '../../context.ts'
import { EventStream } from '../../http/event-stream.ts'
import { endWithAccess } from './stream-access.ts'

const SESSION: PanelSession = { id: 'ses_1', createdAt: 0, expiresAt: 1, userAgent: null, account: null }

/** A stream of a signed-in reader. `find` answers the checks of the session. */
function open(find: () => Promise<PanelSession | null>): EventStream {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const stream = new EventStream(new AbortController().signal)
  const context = {
    store: { sessions: { find } },
    settings: { adminKey: 'key' },
    now: Date.now,
    logger: { debug: () => undefined },
  } as unknown as ApiContext
  const request = { sessionId: 'ses_1', account: null, headers: {}, protocol: 'http' } as unknown as FastifyRequest
  endWithAccess(stream, context, request)
  return stream
}

test.each([
  ['refuses connections', () => Promise.reject(new Error('The database is away.'))],
  ['hangs', () => new Promise<never>(() => {})],
])('a stream ends within 15 s of a database that %s, because its reader shows old data', async (_, failing) => {
  let find: () => Promise<PanelSession | null> = async () => SESSION
  const stream = open(() => find())
  await vi.advanceTimersByTimeAsync(60_000)
  find = failing
  await vi.advanceTimersByTimeAsync(8_000)
  expect(stream.ended).toBe(false)
  await vi.advanceTimersByTimeAsync(7_000)
  expect(stream.ended).toBe(true)
})

test('a stream survives a short failure of the database', async () => {
  let check = 0
  const stream = open(async () => {
    check += 1
    if (check % 3 !== 0) throw new Error('The database is away.')
    return SESSION
  })
  await vi.advanceTimersByTimeAsync(120_000)
  expect(stream.ended).toBe(false)
})
