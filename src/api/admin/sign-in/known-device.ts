import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { accountNameKey } from '../../../domain/access.ts'
import { type Cookie, readCookie, writeCookie } from './cookies.ts'

const COOKIE: Cookie = {
  name: 'pombal_device',
  path: '/admin/v1/session',
  format: /^([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{43})$/,
}
const ID_BYTES = 12
const KEPT_SECONDS = 365 * 24 * 60 * 60

interface SignInPassword {
  /** The name of the account; undefined: it is the password of the panel. */
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
  return writeCookie(COOKIE, { value, maxAge: KEPT_SECONDS, isSecure })
}

/** Whether the browser claims to have signed in before. */
export function hasDevice(request: FastifyRequest, isSecure: boolean): boolean {
  return readCookie(request, COOKIE, isSecure) !== null
}

/** The ID of the browser, if it signed in with this name and password before; else null. */
export function findDevice(
  request: FastifyRequest,
  password: SignInPassword,
  { adminKey, isSecure }: { adminKey: string; isSecure: boolean },
): string | null {
  const [id, signature] = readCookie(request, COOKIE, isSecure) ?? []
  if (id === undefined || signature === undefined) return null
  return timingSafeEqual(Buffer.from(signature, 'base64url'), signatureOf(id, password, adminKey)) ? id : null
}

function signatureOf(id: string, { name, hash }: SignInPassword, adminKey: string): Buffer {
  const signed = ['device', id, name === undefined ? null : accountNameKey(name), hash]
  return createHmac('sha256', adminKey).update(JSON.stringify(signed)).digest()
}
