import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { adminWebhookSchema } from '../../resources/events/admin-webhook.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'
import { showWebhook } from './show-webhook.ts'

export function getInstanceWebhook(api: Api, context: ApiContext): void {
  const { store } = context
  api.get(
    '/instances/:id/webhook',
    {
      schema: {
        operationId: 'getInstanceWebhook',
        summary: 'Read the webhook of an instance',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(adminWebhookSchema, 'The current configuration.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      return {
        data: await showWebhook(context, request, orNotFound(isId(id) ? await store.instances.findWebhook(id) : null)),
      }
    },
  )
}
