import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import type { EndpointScope } from '../endpoints/scope.ts'
import { instanceIdSchema, instanceProperties } from '../resources/instance.ts'
import { dataOf } from '../resources/schema-kit.ts'

const { id, name, state, reason, phone } = instanceProperties
const ownInstanceSchema = Type.Object({ id, name, state, reason, phone }, { title: 'OwnInstance' })

export function getInstance(api: Api, { store }: ApiContext): void {
  api.get(
    '/instance',
    {
      schema: {
        operationId: 'getInstance',
        summary: "Read the token's instance",
        description: 'Returns the instance of the token. `state` shows whether it can send.',
        tags: ['Instance'],
        response: { 200: dataOf(ownInstanceSchema, 'The instance.') },
      },
      config: { scope: 'any' },
    },
    async request => {
      const instance = await store.instances.find(request.instanceId)
      if (!instance) throw new Refusal('invalid_token')
      const { id, name, state, reason, phone } = instance
      return { data: { id, name, state, reason, phone } }
    },
  )
}

export const ownInstanceParams = Type.Object({ instanceId: instanceIdSchema })

/** The check after the scope (contract §1): the path must name the token's instance. Runs before the body is read. */
export function requireOwnInstance(request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  const { instanceId } = request.params as { instanceId: string }
  done(instanceId === request.instanceId ? undefined : new Refusal('instance_not_found'))
}

/** The endpoints of the token's instance. */
export const OWN_ENDPOINTS: EndpointScope = {
  path: '/webhooks/:instanceId/endpoints',
  deliveryPath: '/deliveries',
  noun: 'Endpoint',
  deliveryNoun: 'Delivery',
  tags: ['Webhook'],
  deliveryTags: ['Events'],
  params: ownInstanceParams.properties,
  deliveryParams: {},
  onRequest: [requireOwnInstance],
  config: { scope: 'webhooks' },
  deliveryConfig: { scope: 'events' },
  reach: 'own',
  refusals: ['instance_not_found'],
  deliveryRefusals: [],
  instanceOf: request => request.instanceId,
}
