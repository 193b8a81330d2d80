import { type Static, Type } from 'typebox'
import {
  DEFAULT_ENDPOINT,
  type Endpoint,
  MAX_DESCRIPTION_UNITS,
  MAX_PATTERNS,
} from '../../../domain/events/endpoint.ts'
import { instanceIdSchema } from '../instance.ts'
import { moment, nullable, toIso, toIsoOrNull } from '../schema-kit.ts'
import { urlSchema, webhookSchema } from './webhook.ts'

export const endpointIdSchema = Type.String({
  description: `The endpoint; \`${DEFAULT_ENDPOINT}\` is the one that \`PUT /v1/webhooks/{instanceId}\` sets.`,
  examples: [DEFAULT_ENDPOINT],
})

const settings = {
  url: urlSchema,
  events: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: MAX_PATTERNS,
    description: 'Which events it receives: kinds, groups such as `message.*`, or `*` for all, including later kinds.',
    examples: [['message.*', 'instance.*']],
  }),
  active: Type.Boolean({ description: 'If false, deliveries are held until it is true again.' }),
  description: nullable(Type.String({ maxLength: MAX_DESCRIPTION_UNITS, description: 'A note for people.' })),
}

export const newEndpointSchema = Type.Object(
  {
    url: settings.url,
    events: Type.Optional({ ...settings.events, default: ['*'] }),
    active: Type.Optional({ ...settings.active, default: true }),
    description: Type.Optional(settings.description),
  },
  { title: 'NewEndpoint' },
)

export const endpointChangesSchema = Type.Partial(Type.Object(settings), { title: 'EndpointChanges' })

export const endpointSchema = Type.Object(
  {
    id: endpointIdSchema,
    instanceId: instanceIdSchema,
    ...settings,
    secret: webhookSchema.properties.secret,
    previousSecretUntil: nullable(
      moment('Until when the previous secret also signs, in `webhook-signature`; null if there is none.'),
    ),
    createdAt: moment('When the endpoint was created; for the default endpoint, when its instance was created.'),
  },
  {
    title: 'Endpoint',
    description: 'A URL that receives events, with a secret, an order, retries and a log of its own.',
  },
)

export type EndpointView = Static<typeof endpointSchema>

export function endpointView(endpoint: Endpoint, now: number): EndpointView {
  const { id, instanceId, url, events, active, description, secret, previousSecretUntil, createdAt } = endpoint
  const until = previousSecretUntil !== null && previousSecretUntil > now ? previousSecretUntil : null
  const times = { previousSecretUntil: toIsoOrNull(until), createdAt: toIso(createdAt) }
  return { id, instanceId, url, events: [...events], active, description, secret, ...times }
}
