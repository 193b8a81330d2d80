import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { webhookSchema, webhookView } from '../resources/events/webhook.ts'
import { dataOf } from '../resources/schema-kit.ts'
import { ownInstanceParams, requireOwnInstance } from './own-instance.ts'

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
