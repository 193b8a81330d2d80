import type { FastifyRequest } from 'fastify'
import { DEFAULT_ENDPOINT, type Webhook } from '../../../domain/events/endpoint.ts'
import type { ApiContext } from '../../context.ts'
import { type AdminWebhookView, adminWebhookView } from '../../resources/events/admin-webhook.ts'
import { hideUrl } from '../../resources/events/hide-endpoint.ts'
import { hasRole } from '../access/authorize.ts'

/** Only owners get the secret, and viewers not the whole URL. */
export async function showWebhook(
  { store, now }: ApiContext,
  request: FastifyRequest,
  webhook: Webhook,
): Promise<AdminWebhookView> {
  const changedAt = await store.endpoints.findSecretChangedAt(webhook.instanceId, DEFAULT_ENDPOINT)
  const view = adminWebhookView(webhook, changedAt, now())
  if (hasRole(request, 'owner')) return view
  const url = hasRole(request, 'operator') || view.url === null ? view.url : hideUrl(view.url)
  return { ...view, url, secret: null }
}
