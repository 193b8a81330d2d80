import { hash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import { parseBearer } from '../bearer.ts'
import { WrongKeys } from './wrong-keys.ts'

/**
 * Lets a request through that carries the admin key, compared by digest in constant time. Wrong keys are throttled by
 * address; the right one is never refused, so that nobody can lock the administrator out by guessing.
 */
export function createAdminCheck(adminKey: string, now: () => number) {
  const expected = hash('sha256', adminKey, 'buffer')
  const wrongKeys = new WrongKeys()
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const key = parseBearer(request.headers.authorization)
    if (key === null) done(new Refusal('invalid_admin_key'))
    else if (timingSafeEqual(hash('sha256', key, 'buffer'), expected)) done()
    else done(refuseWrongKey(wrongKeys.count(request.ip, now())))
  }
}

function refuseWrongKey(waitMs: number): Refusal {
  if (waitMs === 0) return new Refusal('invalid_admin_key')
  return new Refusal('too_many_attempts', undefined, { retryAfterSeconds: Math.ceil(waitMs / 1000) })
}
