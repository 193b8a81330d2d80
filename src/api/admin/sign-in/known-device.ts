import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { accountNameKey } from '../../../domain/access.ts'

const COOKIE = 'pombal_device'
const PATH = '/admin/v1/session'
const ID_BYTES = 12
const KEPT_SECONDS = 365 * 24 * 60 * 60
const VALUE = new RegExp(`(?:^|; *)${COOKIE}=([A-Za-z0-9_-]{16})\\.([A-Za-z0-9_-]{43})(?:;|$)`)

export interface SignInPassword {
  /** The account's; undefined: the password of the panel. */
  name: string | undefined
  hash: string
}

/**
 * A browser that signed in with a password keeps this cookie. It opens nothing: its sign-ins with the same name have a limit of
 * their own, so guessing elsewhere does not lock out the person (OWASP, "device cookies"). A new password invalidates it.
 * Otherwise somebody who knew the old password could have collected cookies, each with a limit of its own.
 */
export function deviceCookie(password: SignInPassword, adminKey: string, isSecure: boolean): string {
  const id = randomBytes(ID_BYTES).toString('base64url')
  const value = `${id}.${signatureOf(id, password, adminKey).toString('base64url')}`
  return `${COOKIE}=${value}; Path=${PATH}; Max-Age=${KEPT_SECONDS}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/** Whether the browser claims to have signed in before. */
export function hasDevice({ headers }: FastifyRequest): boolean {
  return VALUE.test(headers.cookie ?? '')
}

/** The ID of the browser, if it signed in with this name and password before; else null. */
export function findDevice({ headers }: FastifyRequest, password: SignInPassword, adminKey: string): string | null {
  const [, id, signature] = VALUE.exec(headers.cookie ?? '') ?? []
  if (id === undefined || signature === undefined) return null
  return timingSafeEqual(Buffer.from(signature, 'base64url'), signatureOf(id, password, adminKey)) ? id : null
}

function signatureOf(id: string, { name, hash }: SignInPassword, adminKey: string): Buffer {
  const signed = ['device', id, name === undefined ? null : accountNameKey(name), hash]
  return createHmac('sha256', adminKey).update(JSON.stringify(signed)).digest()
}
