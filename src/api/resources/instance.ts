import { type Static, Type } from 'typebox'
import { CONNECTION_STATES } from '../../domain/connection/connection.ts'
import { INSTANCE_KINDS, type Instance } from '../../domain/instance.ts'
import { moment, nullable, oneOf, toIso } from './schema-kit.ts'

export const instanceIdSchema = Type.String({ description: 'The instance.', examples: ['inst_4f9k2m7q1x0z'] })

export const stateSchema = oneOf(CONNECTION_STATES, {
  description:
    '`unlinked`; `linking` (a QR code or pairing code is available); `connecting` (the first login after linking); `connected`; ' +
    '`reconnecting` (linked, offline for less than 5 minutes); `disconnected` (offline for longer, still trying); ' +
    '`stopped` (linked, not trying until a person acts); `logged_out`.',
})

export const reasonSchema = Type.String({ description: 'The state in words.', examples: ['Connected to WhatsApp.'] })

export const phoneSchema = nullable(
  Type.String({ description: 'The linked number, digits only; null if none is linked.', examples: ['5511987654321'] }),
)

export const nameSchema = Type.String({
  description: 'The display name, 1 to 100 characters.',
  examples: ['Shop'],
})

export const kindSchema = oneOf(INSTANCE_KINDS, {
  description: '`whatsapp` is linked to a phone; `sandbox` is linked to a simulated phone.',
})

export const tokenSchema = Type.String({
  description: 'The API token of the instance. It is shown only once and stored as a digest.',
  examples: [`pmb_${'x'.repeat(43)}`],
})

export const instanceProperties = {
  id: instanceIdSchema,
  name: nameSchema,
  kind: kindSchema,
  state: stateSchema,
  reason: reasonSchema,
  phone: phoneSchema,
  createdAt: moment('When it was created.'),
}

export const instanceSchema = Type.Object(instanceProperties, {
  title: 'Instance',
  description: 'A tenant: one WhatsApp number, with one token, API keys and endpoints of its own.',
})

export const createdInstanceSchema = Type.Object(
  { ...instanceProperties, token: tokenSchema },
  { title: 'CreatedInstance', description: 'An instance with its API token.' },
)

export type CreatedInstanceView = Static<typeof createdInstanceSchema>

export type InstanceView = Static<typeof instanceSchema>

export function instanceView(instance: Instance): InstanceView {
  const { id, name, kind, state, reason, phone, createdAt } = instance
  return { id, name, kind, state, reason, phone, createdAt: toIso(createdAt) }
}
