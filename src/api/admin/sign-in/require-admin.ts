import { hash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../../domain/refusal.ts'
import type { ApiContext } from '../../context.ts'
import { parseBearer, tokenDigest } from '../../input.ts'
import { authorize } from '../access/authorize.ts'
import { callerAddress } from './caller-address.ts'
import { isHttps } from './cookies.ts'
import { limitsOfCaller } from './limits.ts'
import { isSameOrigin, sessionDigest, sessionToken } from './session-cookie.ts'
import type { WrongKeys } from './wrong-keys.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

export type IsAdminKey = (key: string) => boolean

/** Compares by digest, in constant time. */
export function createKeyCheck(adminKey: string): IsAdminKey {
  const expected = hash('sha256', adminKey, 'buffer')
  return key => timingSafeEqual(hash('sha256', key, 'buffer'), expected)
}

/**
 * Admits requests with the admin key or a session cookie of the panel, if the caller's role includes the call. Wrong keys are
 * limited by address. The right key is never refused, so that guessing cannot lock out the administrator.
 */
export function createAdminCheck(context: ApiContext, isAdminKey: IsAdminKey, wrongKeys: WrongKeys) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const key = parseBearer(request.headers.authorization)
    const accept = (secret: string) => {
      request.key = { holder: request.account?.id ?? 'admin', digest: tokenDigest(secret) }
      request.checkedAt = performance.now()
      try {
        authorize(request)
        done()
      } catch (error) {
        done(error as Error)
      }
    }
    if (key === null) void checkSession(context, request).then(accept, done)
    else if (isAdminKey(key)) accept(key)
    else void wrongKeys.count(limitsOfCaller(callerAddress(request))).then(waitMs => done(refuseWrongKey(waitMs)), done)
  }
}

/** Sets the session and the account of the request. @returns the session's token @throws Refusal */
export async function checkSession({ store, settings, now }: ApiContext, request: FastifyRequest): Promise<string> {
  const token = sessionToken(request, isHttps(request, settings.publicUrl ?? null))
  if (token === null) throw new Refusal('invalid_admin_key')
  const isSafe = SAFE_METHODS.has(request.method)
  if (!isSafe && !isSameOrigin(request, settings.publicUrl ?? null)) throw new Refusal('cross_site_request')
  const session = await store.sessions.find(sessionDigest(token, settings.adminKey), now())
  if (session === null) throw new Refusal('invalid_admin_key')
  request.sessionId = session.id
  request.account = session.account
  return token
}

export function refuseWrongKey(waitMs: number): Refusal {
  if (waitMs === 0) return new Refusal('invalid_admin_key')
  return new Refusal('too_many_attempts', undefined, { retryAfterSeconds: Math.ceil(waitMs / 1000) })
}
