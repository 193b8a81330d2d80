import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { OidcAttempt } from '../../../context.ts'
import { type Cookie, readCookie, writeCookie } from '../cookies.ts'

const COOKIE: Cookie = {
  name: 'pombal_oidc',
  path: '/admin/v1/session/oidc',
  format: /^([A-Za-z0-9_-]{1,1000})\.([A-Za-z0-9_-]{43})$/,
}
const LASTS_MS = 10 * 60_000

export interface OpenAttempt extends OidcAttempt {
  /** The digest of the invitation that the sign-in accepts, in hexadecimal. Null: none. */
  invitation: string | null
}

interface Signer {
  adminKey: string
  /** The client of the provider (`OidcApi.id`). */
  client: string
  isSecure: boolean
}

/** Holds a sign-in that was begun, in the browser that began it. The store has no row of it, because anybody can begin one. */
export function attemptCookie(attempt: OpenAttempt, now: number, signer: Signer): string {
  const content = Buffer.from(JSON.stringify({ ...attempt, endsAt: now + LASTS_MS })).toString('base64url')
  const value = `${content}.${signatureOf(content, signer).toString('base64url')}`
  return writeCookie(COOKIE, { value, maxAge: LASTS_MS / 1_000, isSecure: signer.isSecure })
}

export function endedAttemptCookie(isSecure: boolean): string {
  return writeCookie(COOKIE, { value: '', maxAge: 0, isSecure })
}

/** Null if this browser did not begin a sign-in with this provider, or began it too long ago. */
export function readAttempt(request: FastifyRequest, now: number, signer: Signer): OpenAttempt | null {
  const [content, signature] = readCookie(request, COOKIE, signer.isSecure) ?? []
  if (content === undefined || signature === undefined) return null
  if (!timingSafeEqual(Buffer.from(signature, 'base64url'), signatureOf(content, signer))) return null
  const { endsAt, ...attempt } = JSON.parse(Buffer.from(content, 'base64url').toString()) as OpenAttempt & {
    endsAt: number
  }
  return now < endsAt ? attempt : null
}

function signatureOf(content: string, { adminKey, client }: Signer): Buffer {
  return createHmac('sha256', adminKey)
    .update(JSON.stringify(['oidc', client, content]))
    .digest()
}
