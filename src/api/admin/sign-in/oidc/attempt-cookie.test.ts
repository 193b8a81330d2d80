import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import { attemptCookie, endedAttemptCookie, readAttempt } from './attempt-cookie.ts'

const ATTEMPT = { state: 's'.repeat(43), nonce: 'n'.repeat(43), verifier: 'v'.repeat(43), invitation: 'd'.repeat(64) }
const SIGNER = { adminKey: 'key', client: 'client' }
const STARTED = 1_000_000
const MINUTE_MS = 60_000

function requestWith(cookie: string): FastifyRequest {
  return { headers: { cookie: `other=1; ${cookie.split(';')[0]}; more=2` } } as unknown as FastifyRequest
}

test('an attempt lasts 10 minutes, for the same client and admin key', () => {
  const request = requestWith(attemptCookie(ATTEMPT, STARTED, SIGNER, true))
  expect(readAttempt(request, STARTED + 10 * MINUTE_MS - 1, SIGNER)).toEqual(ATTEMPT)
  expect(readAttempt(request, STARTED + 10 * MINUTE_MS, SIGNER)).toBeNull()
  expect(readAttempt(request, STARTED, { ...SIGNER, client: 'other' })).toBeNull()
  expect(readAttempt(request, STARTED, { ...SIGNER, adminKey: 'other' })).toBeNull()
})

test('the cookie goes only to the calls of this sign-in, from pages of this site', () => {
  expect(attemptCookie(ATTEMPT, STARTED, SIGNER, true)).toMatch(
    /; Path=\/admin\/v1\/session\/oidc; Max-Age=600; HttpOnly; SameSite=Strict; Secure$/,
  )
  expect(endedAttemptCookie(false)).toBe(
    'pombal_oidc=; Path=/admin/v1/session/oidc; Max-Age=0; HttpOnly; SameSite=Strict',
  )
})
