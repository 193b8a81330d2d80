import { createHmac, randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type Cookie, readCookie, writeCookie } from './cookies.ts'

const COOKIE: Cookie = { name: 'pombal_session', path: '/admin/v1', format: /^([A-Za-z0-9_-]{43})$/ }
const TOKEN_BYTES = 32
const ID_BYTES = 12

export const SESSION_MS = 7 * 24 * 60 * 60_000

export function newSessionToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

export function newSessionId(): string {
  return `ses_${randomBytes(ID_BYTES).toString('base64url')}`
}

/** The session token in the request's cookie; null if there is none. */
export function sessionToken(request: Pick<FastifyRequest, 'headers'>, isSecure: boolean): string | null {
  return readCookie(request, COOKIE, isSecure)?.[0] ?? null
}

/** The stored digest of a session token. A new admin key invalidates every session. */
export function sessionDigest(token: string, adminKey: string): Buffer {
  return createHmac('sha256', adminKey).update(token).digest()
}

/** @param token empty to delete the cookie */
export function sessionCookie(token: string, isSecure: boolean): string {
  const maxAge = token === '' ? 0 : SESSION_MS / 1000
  return writeCookie(COOKIE, { value: token, maxAge, isSecure })
}

/**
 * Whether the request comes from a page of this origin: by `Sec-Fetch-Site` (Fetch Metadata), else, over plain http, by
 * `Origin` (RFC 6454). SameSite alone would admit a page on another port of this host.
 */
export function isSameOrigin({ headers }: FastifyRequest, publicUrl: URL | null): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  const { origin, host } = headers
  if (origin === undefined) return false
  return origin === publicUrl?.origin || (URL.canParse(origin) && new URL(origin).host === host)
}
