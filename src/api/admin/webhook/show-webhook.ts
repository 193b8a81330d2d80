import { DEFAULT_ENDPOINT } from '../../../domain/endpoint.ts'
import type { Webhook } from '../../../domain/instance.ts'
import type { ApiContext } from '../../context.ts'
import { type AdminWebhookView, adminWebhookView } from '../../resources/admin-webhook.ts'

export async function showWebhook({ store, now }: ApiContext, webhook: Webhook): Promise<AdminWebhookView> {
  const changedAt = await store.endpoints.findSecretChangedAt(webhook.instanceId, DEFAULT_ENDPOINT)
  return adminWebhookView(webhook, changedAt, now())
}
