import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { ownInstanceParams, requireOwnInstance } from './own-instance.ts'

export function clearWebhook(api: Api, { store }: ApiContext): void {
  api.delete(
    '/webhooks/:instanceId',
    {
      onRequest: requireOwnInstance,
      schema: {
        operationId: 'clearWebhook',
        summary: 'Clear the webhook URL',
        description:
          'Later events are not posted to the default endpoint. Deliveries that are already queued are completed. The secret is kept.',
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
