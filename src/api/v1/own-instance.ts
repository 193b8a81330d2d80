import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import { instanceIdSchema } from '../resources/instance.ts'

export const ownInstanceParams = Type.Object({ instanceId: instanceIdSchema })

/** The third check (contract §1): the path must name the token's instance. Runs before the body is read. */
export function requireOwnInstance(request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  const { instanceId } = request.params as { instanceId: string }
  done(instanceId === request.instanceId ? undefined : new Refusal('instance_not_found'))
}
