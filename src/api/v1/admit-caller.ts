import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import type { Admission } from '../../store/admission/admission.ts'
import { parseBearer, tokenDigest } from '../token.ts'

/**
 * The first two checks of every call under `/v1` (contract §1), before the body is read: token (401), then rate (429).
 * Every later answer carries the state of the rate window.
 */
export function createAdmission(admission: Admission) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const token = parseBearer(request.headers.authorization)
    if (token === null) throw new Refusal('invalid_token')
    const admitted = await admission.admit(tokenDigest(token))
    if (admitted === null) throw new Refusal('invalid_token')
    const { instanceId, withinRate, limit, remaining, resetMs } = admitted
    const resetSeconds = Math.ceil(resetMs / 1000)
    request.instanceId = instanceId
    request.hasKey = true
    reply.headers({ 'ratelimit-limit': limit, 'ratelimit-remaining': remaining, 'ratelimit-reset': resetSeconds })
    if (withinRate) return
    const message = `More than ${limit} requests per minute: wait ${resetSeconds} s.`
    throw new Refusal('rate_limit_exceeded', message, { retryAfterSeconds: resetSeconds })
  }
}
