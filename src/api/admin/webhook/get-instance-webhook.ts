import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { webhookSchema, webhookView } from '../../resources/webhook.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'

export function getInstanceWebhook(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/webhook',
    {
      schema: {
        operationId: 'getInstanceWebhook',
        summary: 'Read the webhook of an instance',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(webhookSchema, 'The current configuration.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      return { data: webhookView(orNotFound(isId(id) ? await store.instances.findWebhook(id) : null)) }
    },
  )
}
