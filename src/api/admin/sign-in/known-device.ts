import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { accountNameKey } from '../../../domain/access.ts'

const COOKIE = 'pombal_device'
const PATH = '/admin/v1/session'
const ID_BYTES = 12
const KEPT_SECONDS = 365 * 24 * 60 * 60
const VALUE = new RegExp(`(?:^|; *)${COOKIE}=([A-Za-z0-9_-]{16})\\.([A-Za-z0-9_-]{43})(?:;|$)`)

/**
 * A browser that signed in with a password keeps this cookie. It opens nothing: its sign-ins with the same name have a limit of
 * their own, so guessing elsewhere does not lock out the person (OWASP, "device cookies").
 * @param name the account's; undefined: the password of the panel
 */
export function deviceCookie(name: string | undefined, adminKey: string, isSecure: boolean): string {
  const id = randomBytes(ID_BYTES).toString('base64url')
  const value = `${id}.${signatureOf(id, name, adminKey).toString('base64url')}`
  return `${COOKIE}=${value}; Path=${PATH}; Max-Age=${KEPT_SECONDS}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/** The ID of the browser, if it signed in with this name before; else null. */
export function findDevice({ headers }: FastifyRequest, name: string | undefined, adminKey: string): string | null {
  const [, id, signature] = VALUE.exec(headers.cookie ?? '') ?? []
  if (id === undefined || signature === undefined) return null
  return timingSafeEqual(Buffer.from(signature, 'base64url'), signatureOf(id, name, adminKey)) ? id : null
}

function signatureOf(id: string, name: string | undefined, adminKey: string): Buffer {
  const signed = ['device', id, name === undefined ? null : accountNameKey(name)]
  return createHmac('sha256', adminKey).update(JSON.stringify(signed)).digest()
}
