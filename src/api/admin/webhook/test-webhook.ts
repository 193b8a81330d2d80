import { DEFAULT_ENDPOINT } from '../../../domain/events/endpoint.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { postTest } from '../../endpoints/post-test.ts'
import { isId } from '../../input.ts'
import { webhookTestSchema } from '../../resources/events/webhook-test.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'

export function testWebhook(api: Api, context: ApiContext): void {
  const { store } = context
  api.post(
    '/instances/:id/webhook/test',
    {
      schema: {
        operationId: 'testWebhook',
        summary: 'Post a test event to the webhook and show the answer',
        description: 'Posts one signed event of the kind `webhook.test` at once. It is not logged and not retried.',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(webhookTestSchema, 'The result.') },
      },
      config: { refusals: ['instance_not_found', 'webhook_not_configured'] },
    },
    async request => {
      const { id } = request.params
      const { url } = orNotFound(isId(id) ? await store.instances.findWebhook(id) : null)
      if (url === null) throw new Refusal('webhook_not_configured')
      return { data: orNotFound(await postTest(context, { instanceId: id, id: DEFAULT_ENDPOINT, url })) }
    },
  )
}
