import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import type { Admission, Admitted } from '../../store/store.ts'
import { parseBearer } from '../bearer.ts'
import { tokenDigest } from '../token.ts'

/**
 * The first two checks of every call under `/v1` (decisions §1): the token (401), then the rate (429). They run before
 * the body is read. From here on every answer carries the state of the rate window.
 */
export function createAdmission(admission: Admission) {
  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const token = parseBearer(request.headers.authorization)
    if (token === null) {
      done(new Refusal('invalid_token'))
      return
    }
    admission.admit(tokenDigest(token)).then(admitted => {
      if (admitted === null) done(new Refusal('invalid_token'))
      else done(admit(request, reply, admitted))
    }, done)
  }
}

function admit(request: FastifyRequest, reply: FastifyReply, admitted: Admitted): Refusal | undefined {
  const resetSeconds = Math.ceil(admitted.resetMs / 1000)
  request.instanceId = admitted.instanceId
  reply.header('ratelimit-limit', admitted.limit)
  reply.header('ratelimit-remaining', admitted.remaining)
  reply.header('ratelimit-reset', resetSeconds)
  if (admitted.withinRate) return undefined
  const message = `More than ${admitted.limit} requests per minute: wait ${resetSeconds} s.`
  return new Refusal('rate_limit_exceeded', message, { retryAfterSeconds: resetSeconds })
}
