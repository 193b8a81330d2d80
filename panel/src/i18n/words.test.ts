import { describe, expect, test } from 'vitest'
import { CONNECTION_CAUSES, CONNECTION_STATES } from '../../../src/domain/connection.ts'
import { FAILURE_CODES } from '../../../src/domain/message.ts'
import { REFUSALS } from '../../../src/domain/refusal.ts'
import { ATTEMPT_ERRORS } from '../../../src/webhooks/attempt-error.ts'
import { en } from './en.ts'
import { ptBr } from './pt-br.ts'

/** Texts that are the same in both languages. */
const SHARED = new Set([
  ...['Menu', 'Webhook', 'Webhook: 7', 'WhatsApp', 'URL', 'Sandbox', 'sandbox', 'QR code', 'msg_…', '1 h', '24 h'],
  ...['Status', 'id', '120363000000000042@g.us'],
])

describe('every code of the service has a Portuguese text', () => {
  test.each([
    ['reasons of a connection', CONNECTION_CAUSES, ptBr.connection.reasons],
    ['states of a connection', CONNECTION_STATES, ptBr.connection.states],
    ['failures of a message', FAILURE_CODES, ptBr.failures],
    ['errors of an attempt', ATTEMPT_ERRORS, ptBr.attemptErrors],
    ['refusals', Object.keys(REFUSALS), { ...ptBr.problems, ...ptBr.problems.refusals }],
  ])('%s', (_, codes, words: Record<string, unknown>) => {
    expect(codes.filter(code => !words[code])).toEqual([])
  })
})

test('every Portuguese text differs from the English one', () => {
  const same = leaves(en, ptBr).filter(([english, portuguese]) => english === portuguese && !SHARED.has(english))
  expect(same.map(([english]) => english)).toEqual([])
})

/** All pairs of texts. Functions are called with the same arguments. */
function leaves(english: unknown, portuguese: unknown): [string, string][] {
  if (typeof english === 'string') return [[english, String(portuguese)]]
  if (typeof english === 'function') return [[english('7', '7'), (portuguese as typeof english)('7', '7')]]
  return Object.entries(english as object).flatMap(([key, value]) => {
    return leaves(value, (portuguese as Record<string, unknown>)[key])
  })
}
