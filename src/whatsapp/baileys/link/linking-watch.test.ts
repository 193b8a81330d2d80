import { EventEmitter } from 'node:events'
import type { AuthenticationCreds, BinaryNode, WASocket } from 'baileys'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { LinkingWatch } from './linking-watch.ts'

const QUERY_TIMEOUT_MS = 15_000
const CONFIRM_WITHIN_MS = 60_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A link that shows a pairing code. */
function watchPairingCode() {
  const ws = new EventEmitter()
  const obstacles: string[] = []
  const newCodes: (string | null)[] = []
  const socket = { ws, sendNode: async () => undefined } as unknown as WASocket
  const watch = new LinkingWatch(socket, {
    creds: { pairingCode: 'ABCDEFGH', me: { id: '5511912345678@s.whatsapp.net' } } as AuthenticationCreds,
    closed: new AbortController().signal,
    queryTimeoutMs: QUERY_TIMEOUT_MS,
    passkeys: false,
    run: () => undefined,
    events: { qr: () => undefined, newCode: code => newCodes.push(code), passkey: () => undefined },
    onObstacle: obstacle => obstacles.push(obstacle),
    onCodesEnded: () => undefined,
  })
  const receives = (stage: string) => {
    const content: BinaryNode[] = [{ tag: 'link_code_companion_reg', attrs: { stage } }]
    ws.emit('CB:notification', { tag: 'notification', attrs: { type: 'link_code_companion_reg' }, content })
  }
  const refuses = (id: string, code = '400') => {
    const content: BinaryNode[] = [{ tag: 'error', attrs: { code } }]
    ws.emit('CB:iq,type:error', { tag: 'iq', attrs: { type: 'error', id }, content })
  }
  return { ws, watch, obstacles, newCodes, receives, refuses }
}

describe('a phone has a minute to confirm', () => {
  test('after the latest time that its owner typed the code', () => {
    const { obstacles, receives } = watchPairingCode()
    receives('primary_hello')
    vi.advanceTimersByTime(CONFIRM_WITHIN_MS - 1)
    receives('primary_hello')
    vi.advanceTimersByTime(CONFIRM_WITHIN_MS - 1)
    expect(obstacles).toEqual([])
    vi.advanceTimersByTime(1)
    expect(obstacles).toEqual(['phone_silent'])
  })

  test('and more time if WhatsApp asks for a new code, which nobody has typed yet', () => {
    const { watch, obstacles, newCodes, receives } = watchPairingCode()
    receives('primary_hello')
    expect(watch.obstacleAtEnd).toBe('unfinished')
    receives('refresh_code')
    expect(newCodes).toEqual([null])
    vi.advanceTimersByTime(2 * CONFIRM_WITHIN_MS)
    expect(obstacles).toEqual([])
    expect(watch.obstacleAtEnd).toBeUndefined()
  })
})

describe('an error from WhatsApp', () => {
  test('as the answer to the request for a pairing code ends the linking', () => {
    const { obstacles, refuses } = watchPairingCode()
    refuses('hello')
    expect(obstacles).toEqual(['device_refused'])
  })

  test('as the answer to another query, such as a keep-alive, does not', () => {
    const { ws, obstacles, refuses } = watchPairingCode()
    ws.on('TAG:ping', () => undefined)
    refuses('ping')
    expect(obstacles).toEqual([])
  })

  test('after the code was typed ends the linking only if it is known', () => {
    const { obstacles, receives, refuses } = watchPairingCode()
    receives('primary_hello')
    refuses('finish')
    expect(obstacles).toEqual([])
    refuses('finish', '419')
    expect(obstacles).toEqual(['device_limit'])
  })
})
