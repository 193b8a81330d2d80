import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { checkWebhookUrl, isId } from '../../input.ts'
import { dataOf, nullable } from '../../resources/schema-kit.ts'
import { urlSchema, webhookSchema, webhookView } from '../../resources/webhook.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'

export function setInstanceWebhook(api: Api, context: ApiContext): void {
  const { store } = context
  api.put(
    '/instances/:id/webhook',
    {
      schema: {
        operationId: 'setInstanceWebhook',
        summary: 'Set or clear the webhook of an instance',
        description: 'The URL applies to events created from now on. With null, new events are logged but not posted.',
        tags: ['Webhooks'],
        params: instanceParams,
        body: Type.Object({ url: nullable(urlSchema) }, { title: 'WebhookUrlOrNull' }),
        response: { 200: dataOf(webhookSchema, 'The updated configuration.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id } = request.params
      const { url } = request.body
      if (url !== null) checkWebhookUrl(url, context.checkWebhookUrl)
      return { data: webhookView(orNotFound(isId(id) ? await store.instances.setWebhookUrl(id, url) : null)) }
    },
  )
}
