import { describe, expect, test } from 'vitest'
import { ApiError, isFromProxy } from '../../api/client.ts'
import { en } from '../../i18n/en.ts'
import { ptBr } from '../../i18n/pt-br.ts'
import { problemText } from './problem.tsx'

function invalid(subject: string, field: string | null): ApiError {
  const details = field === null ? [] : [{ field, message: 'is wrong' }]
  return new ApiError({ code: 'invalid_request', message: `"${field}" is wrong.`, status: 400, subject, details })
}

describe('in Portuguese', () => {
  test.each([
    ['targets', 'to', 'e-mail'],
    ['targets', 'channel', 'SMTP_URL'],
    ['targets', 'url', 'tópico'],
    ['messages', 'to', 'número'],
    ['proxy', 'url', 'socks5'],
    ['proxy', null, 'socks5'],
    ['links', 'returnUrl', 'retorno'],
    ['pace', null, 'silêncio'],
    ['pace', 'perMinute', 'Confira os campos'],
  ])('a fault of %s in the field %s has its own remedy', (subject, field, remedy) => {
    expect(problemText(invalid(subject, field), ptBr)).toContain(remedy)
  })
})

test('in English the sentence of the service is shown', () => {
  expect(problemText(invalid('targets', 'to'), en)).toBe('"to" is wrong.')
})

test('an answer without an error code of the service is from a proxy if its status is 502, 503 or 504', () => {
  expect(isFromProxy(502, null)).toBe(true)
  expect(isFromProxy(504, { error: 'gateway timeout' })).toBe(true)
  expect(isFromProxy(503, { error: { code: 'service_unavailable' } })).toBe(false)
  expect(isFromProxy(500, null)).toBe(false)
})
