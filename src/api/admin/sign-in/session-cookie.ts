import { createHmac, randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'

const COOKIE = 'pombal_session'
const PATH = '/admin/v1'
const TOKEN_BYTES = 32
const ID_BYTES = 12
const VALUE = new RegExp(`(?:^|; *)${COOKIE}=([A-Za-z0-9_-]{43})(?:;|$)`)

export const SESSION_MS = 7 * 24 * 60 * 60_000

export function newSessionToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

export function newSessionId(): string {
  return `ses_${randomBytes(ID_BYTES).toString('base64url')}`
}

/** The session token in the request's cookie; null if there is none. */
export function sessionToken({ headers }: FastifyRequest): string | null {
  return (headers.cookie !== undefined && VALUE.exec(headers.cookie)?.[1]) || null
}

/** The stored digest of a session token. A new admin key invalidates every session. */
export function sessionDigest(token: string, adminKey: string): Buffer {
  return createHmac('sha256', adminKey).update(token).digest()
}

/** @param token empty to delete the cookie */
export function sessionCookie(token: string, isSecure: boolean): string {
  const maxAge = token === '' ? 0 : SESSION_MS / 1000
  return `${COOKIE}=${token}; Path=${PATH}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/** Whether the browser uses https, directly or through a trusted proxy. Over http it would discard a `Secure` cookie. */
export function isHttps(request: FastifyRequest, publicUrl: URL | null): boolean {
  return publicUrl?.protocol === 'https:' || request.protocol === 'https'
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
