import { type Static, Type } from 'typebox'
import { PREVIOUS_SECRET_MS, type Webhook } from '../../../domain/events/endpoint.ts'
import { moment, nullable, toIsoOrNull } from '../schema-kit.ts'
import { webhookSchema, webhookView } from './webhook.ts'

export const adminWebhookSchema = Type.Object(
  {
    ...webhookSchema.properties,
    secret: nullable(webhookSchema.properties.secret),
    previousSecretUntil: nullable(
      moment('Until when the previous secret also signs, in `webhook-signature`; null if there is none.'),
    ),
  },
  {
    title: 'AdminWebhook',
    description:
      'The webhook of an instance, and until when its previous secret signs. `secret` is null for operators and ' +
      'viewers. Viewers see `https://host/…` as `url`.',
  },
)

export type AdminWebhookView = Static<typeof adminWebhookSchema>

/** @param secretChangedAt null if the secret was never changed */
export function adminWebhookView(webhook: Webhook, secretChangedAt: number | null, now: number): AdminWebhookView {
  const until = secretChangedAt === null ? 0 : secretChangedAt + PREVIOUS_SECRET_MS
  return { ...webhookView(webhook), previousSecretUntil: toIsoOrNull(until > now ? until : null) }
}
