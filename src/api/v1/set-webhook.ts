import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { checkWebhookUrl } from '../input.ts'
import { urlSchema, webhookSchema, webhookView } from '../resources/events/webhook.ts'
import { dataOf } from '../resources/schema-kit.ts'
import { ownInstanceParams, requireOwnInstance } from './own-instance.ts'

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
