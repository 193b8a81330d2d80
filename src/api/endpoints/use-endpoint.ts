import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import { newWebhookSecret } from '../admin/secrets.ts'
import type { Api, ApiContext } from '../context.ts'
import { endpointIdSchema, endpointSchema, endpointView } from '../resources/events/endpoint.ts'
import { webhookTestSchema } from '../resources/events/webhook-test.ts'
import { dataOf } from '../resources/schema-kit.ts'
import { postTest } from './post-test.ts'
import { type EndpointScope, getEndpointOrRefuse } from './scope.ts'

export function replaceEndpointSecret(api: Api, context: ApiContext, scope: EndpointScope): void {
  const { store, now } = context
  api.post(
    `${scope.path}/:endpointId/secret`,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `replace${scope.noun}Secret`,
        summary: 'Create a new signing secret for an endpoint',
        description:
          'The new secret signs every POST from now on, including those of queued deliveries. Until ' +
          '`previousSecretUntil`, 24 h from now, `webhook-signature` has a second signature with the old secret. ' +
          '`X-Service-Signature` has only the new one.',
        tags: scope.tags,
        params: Type.Object({ ...scope.params, endpointId: endpointIdSchema }),
        response: { 200: dataOf(endpointSchema, 'The endpoint with the new secret.') },
      },
      config: { ...scope.config, refusals: [...scope.refusals, 'endpoint_not_found'] },
    },
    async request => {
      const instanceId = await scope.instanceOf(request)
      const { id } = await getEndpointOrRefuse(context, instanceId, request)
      await store.endpoints.replaceSecret(instanceId, id, newWebhookSecret(), now())
      return { data: endpointView(await getEndpointOrRefuse(context, instanceId, request), now()) }
    },
  )
}

export function testEndpoint(api: Api, context: ApiContext, scope: EndpointScope): void {
  api.post(
    `${scope.path}/:endpointId/test`,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `test${scope.noun}`,
        summary: 'Post a test event to an endpoint and show the answer',
        description:
          'Posts one signed event of the kind `webhook.test` at once, whatever the filter, even while the endpoint ' +
          'is paused. It is not logged and not retried.',
        tags: scope.tags,
        params: Type.Object({ ...scope.params, endpointId: endpointIdSchema }),
        response: { 200: dataOf(webhookTestSchema, 'The result.') },
      },
      config: { ...scope.config, refusals: [...scope.refusals, 'endpoint_not_found'] },
    },
    async request => {
      const endpoint = await getEndpointOrRefuse(context, await scope.instanceOf(request), request)
      const data = await postTest(context, endpoint)
      if (data === null) throw new Refusal('endpoint_not_found')
      return { data }
    },
  )
}

const requestedSchema = Type.Object({
  count: Type.Integer({ minimum: 0, description: 'How many deliveries are retried.' }),
})

export function retryEndpoint(api: Api, context: ApiContext, scope: EndpointScope): void {
  const { store } = context
  api.post(
    `${scope.path}/:endpointId/retry`,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `retry${scope.noun}`,
        summary: 'Retry everything that waits on an endpoint',
        description:
          'Makes an additional attempt now for every delivery that waits for a retry, in the order of the events and ' +
          'as fast as the endpoint has free slots. Deliveries that were retried on request in the last 10 s are left ' +
          'out. If an attempt fails, the scheduled attempt still takes place at its time. While the endpoint is paused, the ' +
          'attempts wait until it is resumed.',
        tags: scope.tags,
        params: Type.Object({ ...scope.params, endpointId: endpointIdSchema }),
        response: { 202: dataOf(requestedSchema, 'Requested.') },
      },
      config: { ...scope.config, refusals: [...scope.refusals, 'endpoint_not_found'] },
    },
    async (request, reply) => {
      const instanceId = await scope.instanceOf(request)
      const { id } = await getEndpointOrRefuse(context, instanceId, request)
      const count = await store.deliveries.retryAllNow(instanceId, id, store.clock.steady())
      return reply.code(202).send({ data: { count } })
    },
  )
}
