import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import type { Admission } from '../../store/admission/admission.ts'
import { parseBearer, tokenDigest } from '../input.ts'

/**
 * The first checks of every call under `/v1` (contract §1), before the body is read: token or API key (401), rate (429),
 * then the scope of the key (403). Every later answer carries the state of the rate window.
 */
export function createAdmission(admission: Admission) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const token = parseBearer(request.headers.authorization)
    if (token === null) throw new Refusal('invalid_token')
    const digest = tokenDigest(token)
    const admitted = await admission.admit(digest)
    if (admitted === null) throw new Refusal('invalid_token')
    const { instanceId, key, calls, limit, resetMs } = admitted
    const remaining = Math.max(0, limit - calls)
    const resetSeconds = Math.ceil(resetMs / 1000)
    request.instanceId = instanceId
    request.apiKey = key
    request.key = { holder: instanceId, digest }
    request.checkedAt = performance.now()
    reply.headers({ 'ratelimit-limit': limit, 'ratelimit-remaining': remaining, 'ratelimit-reset': resetSeconds })
    if (calls > limit) {
      const message = `More than ${limit} requests per minute: wait ${resetSeconds} s.`
      throw new Refusal('rate_limit_exceeded', message, { retryAfterSeconds: resetSeconds })
    }
    const { scope, refusesOnly } = request.routeOptions.config
    // Unknown addresses (404) and methods (405) need no scope.
    if (key === null || request.is404 || refusesOnly || scope === 'any') return
    if (scope === undefined) throw new Refusal('forbidden', "Only the instance's token may make this call.")
    if (!key.scopes.includes(scope)) throw new Refusal('forbidden', `The key lacks the scope "${scope}".`)
  }
}
