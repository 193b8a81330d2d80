import { describe, expect, test } from 'vitest'
import { ApiError, proxyError } from '../../api/client.ts'
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

describe('an answer without an error code of the service is from a proxy', () => {
  test.each([
    [502, null, en.problems.unanswered],
    [504, { error: 'gateway timeout' }, en.problems.unanswered],
    [413, null, en.problems.too_large_for_proxy],
    [403, {}, en.problems.refused_by_proxy(403)],
  ])('%i %j', (status, answer, text) => {
    expect(problemText(proxyError(status, answer, true), en)).toBe(text)
  })

  test('an answer with one is from the service', () => {
    expect(proxyError(503, { error: { code: 'service_unavailable' } }, true)).toBeNull()
  })
})
