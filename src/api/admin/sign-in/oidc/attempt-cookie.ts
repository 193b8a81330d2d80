import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { OidcAttempt } from '../../../context.ts'

const COOKIE = 'pombal_oidc'
const PATH = '/admin/v1/session/oidc'
const LASTS_MS = 10 * 60_000
const VALUE = new RegExp(`(?:^|; *)${COOKIE}=([A-Za-z0-9_-]{1,1000})\\.([A-Za-z0-9_-]{43})(?:;|$)`)

export interface OpenAttempt extends OidcAttempt {
  /** The digest of the invitation that the sign-in accepts, in hexadecimal. Null: none. */
  invitation: string | null
}

interface Signer {
  adminKey: string
  /** The client of the provider (`OidcApi.id`). */
  client: string
}

/** Holds a sign-in that was begun, in the browser that began it. The store has no row of it, because anybody can begin one. */
export function attemptCookie(attempt: OpenAttempt, now: number, signer: Signer, isSecure: boolean): string {
  const content = Buffer.from(JSON.stringify({ ...attempt, endsAt: now + LASTS_MS })).toString('base64url')
  return cookie(`${content}.${signatureOf(content, signer).toString('base64url')}`, LASTS_MS / 1_000, isSecure)
}

export function endedAttemptCookie(isSecure: boolean): string {
  return cookie('', 0, isSecure)
}

/** Null if this browser did not begin a sign-in with this provider, or too long ago. */
export function readAttempt({ headers }: FastifyRequest, now: number, signer: Signer): OpenAttempt | null {
  const [, content, signature] = VALUE.exec(headers.cookie ?? '') ?? []
  if (content === undefined || signature === undefined) return null
  if (!timingSafeEqual(Buffer.from(signature, 'base64url'), signatureOf(content, signer))) return null
  const { endsAt, ...attempt } = JSON.parse(Buffer.from(content, 'base64url').toString()) as OpenAttempt & {
    endsAt: number
  }
  return now < endsAt ? attempt : null
}

/** Only requests of the panel's own pages carry it. */
function cookie(value: string, maxAge: number, isSecure: boolean): string {
  return `${COOKIE}=${value}; Path=${PATH}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

function signatureOf(content: string, { adminKey, client }: Signer): Buffer {
  return createHmac('sha256', adminKey)
    .update(JSON.stringify(['oidc', client, content]))
    .digest()
}
