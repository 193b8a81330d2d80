import type { FastifyRequest } from 'fastify'
import type { RefusalCode } from '../domain/refusal.ts'

/** The refusal of a call whose instance was deleted after the first checks. Under `/v1`, its token is then invalid. */
export function deletedMeanwhile(request: Pick<FastifyRequest, 'instanceId'>): RefusalCode {
  return request.instanceId === '' ? 'instance_not_found' : 'invalid_token'
}
