import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import { attemptCookie, endedAttemptCookie, readAttempt } from './attempt-cookie.ts'

const ATTEMPT = { state: 's'.repeat(43), nonce: 'n'.repeat(43), verifier: 'v'.repeat(43), invitation: 'd'.repeat(64) }
const SIGNER = { adminKey: 'key', client: 'client', isSecure: true }
const STARTED = 1_000_000
const MINUTE_MS = 60_000

function requestWith(cookie: string): FastifyRequest {
  return { headers: { cookie: `other=1; ${cookie.split(';')[0]}; more=2` } } as unknown as FastifyRequest
}

test('an attempt lasts 10 minutes, for the same client and admin key', () => {
  const request = requestWith(attemptCookie(ATTEMPT, STARTED, SIGNER))
  expect(readAttempt(request, STARTED + 10 * MINUTE_MS - 1, SIGNER)).toEqual(ATTEMPT)
  expect(readAttempt(request, STARTED + 10 * MINUTE_MS, SIGNER)).toBeNull()
  expect(readAttempt(request, STARTED, { ...SIGNER, client: 'other' })).toBeNull()
  expect(readAttempt(request, STARTED, { ...SIGNER, adminKey: 'other' })).toBeNull()
})

test('over https, a cookie that another host of the domain may have planted does not count as an attempt', () => {
  const [plain = ''] = attemptCookie(ATTEMPT, STARTED, { ...SIGNER, isSecure: false }).split(';')
  expect(readAttempt(requestWith(plain), STARTED, { ...SIGNER, isSecure: false })).toEqual(ATTEMPT)
  expect(readAttempt(requestWith(plain), STARTED, SIGNER)).toBeNull()
})

test('the cookie is only for pages of this site, over https only of this host, else only for the calls of this sign-in', () => {
  expect(attemptCookie(ATTEMPT, STARTED, SIGNER)).toMatch(
    /^__Host-pombal_oidc=[^;]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Strict; Secure$/,
  )
  expect(endedAttemptCookie(false)).toBe(
    'pombal_oidc=; Path=/admin/v1/session/oidc; Max-Age=0; HttpOnly; SameSite=Strict',
  )
})
