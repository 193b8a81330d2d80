import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { checkWebhookUrl, isId } from '../../input.ts'
import { adminWebhookSchema } from '../../resources/events/admin-webhook.ts'
import { urlSchema } from '../../resources/events/webhook.ts'
import { dataOf, nullable } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'
import { showWebhook } from './show-webhook.ts'

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
        response: { 200: dataOf(adminWebhookSchema, 'The updated configuration.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id } = request.params
      const { url } = request.body
      if (url !== null) checkWebhookUrl(url, context.checkWebhookUrl)
      const changed = orNotFound(isId(id) ? await store.instances.setWebhookUrl(id, url) : null)
      return { data: await showWebhook(context, request, changed) }
    },
  )
}
