import type { FastifyRequest } from 'fastify'
import { Refusal, type RefusalCode } from '../domain/refusal.ts'

/** The refusal of a call whose instance was deleted after the first checks. Under `/v1`, its token is then invalid. */
export function deletedMeanwhile(request: Pick<FastifyRequest, 'instanceId'>): RefusalCode {
  return request.instanceId === '' ? 'instance_not_found' : 'invalid_token'
}

/** @throws Refusal `service_unavailable`, whose message says what to wait for */
export function refuseBesideOldNodes(): never {
  const message =
    'A node of an earlier version, which cannot do this, is still running: repeat this when all nodes are updated.'
  throw new Refusal('service_unavailable', message, { retryAfterSeconds: 10 })
}
