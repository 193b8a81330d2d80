import { DEFAULT_ENDPOINT } from '../../../domain/events/endpoint.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { adminWebhookSchema } from '../../resources/events/admin-webhook.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'
import { newWebhookSecret } from '../secrets.ts'
import { showWebhook } from './show-webhook.ts'

export function replaceWebhookSecret(api: Api, context: ApiContext): void {
  const { store, now } = context
  api.post(
    '/instances/:id/webhook/secret',
    {
      schema: {
        operationId: 'replaceWebhookSecret',
        summary: 'Create a new signing secret',
        description:
          'The new secret signs every POST from now on, including those of queued deliveries. For 24 h, ' +
          '`webhook-signature` has a second signature with the old secret. `X-Service-Signature` has only the new one.',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(adminWebhookSchema, 'The configuration with the new secret.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      if (isId(id)) await store.endpoints.replaceSecret(id, DEFAULT_ENDPOINT, newWebhookSecret(), now())
      return {
        data: await showWebhook(context, request, orNotFound(isId(id) ? await store.instances.findWebhook(id) : null)),
      }
    },
  )
}
