import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { checkWebhookUrl } from '../input.ts'
import { urlSchema, webhookSchema, webhookView } from '../resources/events/webhook.ts'
import { dataOf } from '../resources/schema-kit.ts'
import { ownInstanceParams, requireOwnInstance } from './instance.ts'

export function getWebhook(api: Api, { store }: ApiContext): void {
  api.get(
    '/webhooks/:instanceId',
    {
      onRequest: requireOwnInstance,
      schema: {
        operationId: 'getWebhook',
        summary: 'Read the webhook configuration',
        tags: ['Webhook'],
        params: ownInstanceParams,
        response: { 200: dataOf(webhookSchema, 'The current configuration.') },
      },
      config: { scope: 'webhooks', refusals: ['instance_not_found'] },
    },
    async request => {
      const webhook = await store.instances.findWebhook(request.instanceId)
      if (!webhook) throw new Refusal('instance_not_found')
      return { data: webhookView(webhook) }
    },
  )
}

export function setWebhook(api: Api, context: ApiContext): void {
  const { store } = context
  api.put(
    '/webhooks/:instanceId',
    {
      onRequest: requireOwnInstance,
      schema: {
        operationId: 'setWebhook',
        summary: 'Set the webhook URL',
        description: 'The URL applies to events created from now on. Deliveries already queued keep their URL.',
        tags: ['Webhook'],
        params: ownInstanceParams,
        body: Type.Object({ url: urlSchema }, { title: 'WebhookUrl' }),
        response: { 200: dataOf(webhookSchema, 'The updated configuration.') },
      },
      config: { scope: 'webhooks', refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { url } = request.body
      checkWebhookUrl(url, context.checkWebhookUrl)
      const webhook = await store.instances.setWebhookUrl(request.instanceId, url)
      if (!webhook) throw new Refusal('instance_not_found')
      return { data: webhookView(webhook) }
    },
  )
}

export function clearWebhook(api: Api, { store }: ApiContext): void {
  api.delete(
    '/webhooks/:instanceId',
    {
      onRequest: requireOwnInstance,
      schema: {
        operationId: 'clearWebhook',
        summary: 'Clear the webhook URL',
        description:
          'Later events are not posted to the default endpoint. Queued deliveries are completed. The endpoint loses ' +
          'its filter, pause and description, and keeps its secret.',
        tags: ['Webhook'],
        params: ownInstanceParams,
        response: { 204: Type.Null({ description: 'Cleared.' }) },
      },
      config: { scope: 'webhooks', refusals: ['instance_not_found'] },
    },
    async (request, reply) => {
      const cleared = await store.instances.setWebhookUrl(request.instanceId, null)
      if (!cleared) throw new Refusal('instance_not_found')
      return reply.code(204).send(null)
    },
  )
}
