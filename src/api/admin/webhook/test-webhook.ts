import { TEST_EVENT, testBody } from '../../../domain/event.ts'
import { newEventId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { webhookTestSchema } from '../../resources/webhook-test.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'

export function testWebhook(api: Api, { store, webhooks, now }: ApiContext): void {
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
      const startedAt = now()
      const secrets = orNotFound(await store.instances.findSigningSecrets(id, startedAt))
      if (url === null) throw new Refusal('webhook_not_configured')
      const text = testBody(id, startedAt)
      const body = Buffer.from(text)
      const eventId = newEventId(startedAt)
      const headers = webhooks.headersOf({ body, secrets, eventId, kind: TEST_EVENT, attemptNumber: 1, now: startedAt })
      const begun = performance.now()
      // Without a permit: a person waits for the answer, and must get it when the lanes hold all permits.
      const outcome = await webhooks.post({ url, headers, body })
      const answered = outcome.kind === 'answered'
      return {
        data: {
          url,
          status: answered ? outcome.status : null,
          error: answered ? null : outcome.error,
          durationMs: Math.round(performance.now() - begun),
          responseExcerpt: answered ? outcome.excerpt : null,
          headers,
          body: text,
        },
      }
    },
  )
}
