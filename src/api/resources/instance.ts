import { type Static, Type } from 'typebox'
import { CONNECTION_STATES } from '../../domain/connection.ts'
import { INSTANCE_KINDS, type Instance } from '../../domain/instance.ts'
import { moment, nullable, oneOf, toIso } from './schema-kit.ts'

export const instanceIdSchema = Type.String({ description: 'The instance.', examples: ['inst_4f9k2m7q1x0z'] })

export const stateSchema = oneOf(CONNECTION_STATES, {
  description:
    '`unlinked`; `linking` (a QR code is on show); `connecting` (the first login after linking); `connected`; ' +
    '`reconnecting` (linked, away for less than 5 minutes); `disconnected` (longer, still trying); `stopped` (linked, ' +
    'not trying: needs a person); `logged_out`.',
})

export const reasonSchema = Type.String({ description: 'The state in words.', examples: ['Connected to WhatsApp.'] })

export const phoneSchema = nullable(
  Type.String({ description: 'The linked number, digits only; null while none is.', examples: ['5511987654321'] }),
)

export const nameSchema = Type.String({
  description: 'For people: 1 to 100 characters.',
  examples: ['Shop'],
})

export const kindSchema = oneOf(INSTANCE_KINDS, {
  description: '`whatsapp` is linked to a phone; `sandbox` to a simulated one that needs nothing.',
})

export const tokenSchema = Type.String({
  description: 'The API token of the instance. It is shown this once and stored only as a digest.',
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
  description: 'A tenant: one WhatsApp number, one token, one webhook.',
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
