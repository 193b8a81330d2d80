import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { postSigned } from '../../endpoints/post-test.ts'
import { isId } from '../../input.ts'
import { operatorEndpointParams, operatorEndpointSchema } from '../../resources/events/operator-endpoint.ts'
import { webhookTestSchema } from '../../resources/events/webhook-test.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { newWebhookSecret } from '../secrets.ts'
import { findOrRefuse, found, viewOf } from './manage-operator-endpoints.ts'

const tags = ['Webhooks']

export function replaceOperatorEndpointSecret(api: Api, context: ApiContext): void {
  const { store, now } = context
  api.post(
    '/endpoints/:id/secret',
    {
      schema: {
        operationId: 'replaceOperatorEndpointSecret',
        summary: 'Create a new signing secret for an operator endpoint',
        description: 'Like `replaceInstanceEndpointSecret`: the old secret also signs for 24 h.',
        tags,
        params: operatorEndpointParams,
        response: { 200: dataOf(operatorEndpointSchema, 'The endpoint with the new secret.') },
      },
      config: { refusals: ['endpoint_not_found'] },
    },
    async request => {
      const { id } = request.params
      const replaced = isId(id) ? await store.operatorEndpoints.replaceSecret(id, newWebhookSecret(), now()) : null
      return { data: await viewOf(found(replaced), context) }
    },
  )
}

export function testOperatorEndpoint(api: Api, context: ApiContext): void {
  const { store, now } = context
  api.post(
    '/endpoints/:id/test',
    {
      schema: {
        operationId: 'testOperatorEndpoint',
        summary: 'Post a test event to an operator endpoint and show the answer',
        description:
          'Posts one signed event of the kind `webhook.test` at once, with `instanceId` null, even while the endpoint is ' +
          'paused. It is not logged and not retried.',
        tags,
        params: operatorEndpointParams,
        response: { 200: dataOf(webhookTestSchema, 'The result.') },
      },
      config: { refusals: ['endpoint_not_found'] },
    },
    async request => {
      const { id, url } = await findOrRefuse(context, request.params.id)
      const secrets = await store.operatorEndpoints.findSecrets(id, now())
      if (secrets === null) throw new Refusal('endpoint_not_found')
      return { data: await postSigned(context, { url, secrets }) }
    },
  )
}

export function retryOperatorEndpoint(api: Api, context: ApiContext): void {
  const { store } = context
  const requestedSchema = Type.Object({
    count: Type.Integer({ minimum: 0, description: 'How many deliveries are retried.' }),
  })
  api.post(
    '/endpoints/:id/retry',
    {
      schema: {
        operationId: 'retryOperatorEndpoint',
        summary: 'Retry everything that waits on an operator endpoint',
        description: 'Like `retryInstanceEndpoint`, for every instance.',
        tags,
        params: operatorEndpointParams,
        response: { 202: dataOf(requestedSchema, 'Requested.') },
      },
      config: { refusals: ['endpoint_not_found'] },
    },
    async (request, reply) => {
      const { id } = await findOrRefuse(context, request.params.id)
      let count = 0
      for (const instanceId of await store.operatorEndpoints.listWaiting(id))
        count += await store.deliveries.retryAllNow(instanceId, id, store.clock.steady())
      return reply.code(202).send({ data: { count } })
    },
  )
}
