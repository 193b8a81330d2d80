import { type Static, Type } from 'typebox'
import type { Webhook } from '../../../domain/events/endpoint.ts'
import { instanceIdSchema } from '../instance.ts'
import { nullable } from '../schema-kit.ts'

export const MAX_URL_LENGTH = 2_048

export const urlSchema = Type.String({
  maxLength: MAX_URL_LENGTH,
  description:
    'The URL that receives events: absolute, https recommended, http accepted, at most 2,048 characters, without ' +
    'credentials, and not an address that webhooks may not reach.',
  examples: ['https://example.com/webhooks/pombal'],
})

export const webhookSchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    url: nullable(Type.String({ description: 'The URL that receives events; null if none is set.' })),
    secret: Type.String({
      description:
        'Signs every delivery. The whole string, in UTF-8, is the HMAC key of `X-Service-Signature`; the ' +
        '`standardwebhooks` libraries accept it unchanged.',
      examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='],
    }),
    active: Type.Boolean({ description: 'Whether a URL is set.' }),
  },
  { title: 'WebhookConfiguration', description: 'The URL and the secret for the events of an instance.' },
)

type WebhookView = Static<typeof webhookSchema>

export function webhookView({ instanceId, url, secret }: Webhook): WebhookView {
  return { instanceId, url, secret, active: url !== null }
}
