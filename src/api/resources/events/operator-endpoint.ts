import { type Static, Type } from 'typebox'
import { MAX_PATTERNS, OPERATOR_EVENTS, type OperatorEndpoint } from '../../../domain/events/endpoint.ts'
import { INSTANCE_EVENT_KINDS } from '../../../domain/events/event.ts'
import { MAX_COUNTED_DELIVERIES, type OperatorDeliveries } from '../../../store/endpoints/operator-endpoints.ts'
import { moment, oneOf } from '../schema-kit.ts'
import { endpointSchema, endpointView, newEndpointSchema } from './endpoint.ts'

const events = Type.Array(oneOf([OPERATOR_EVENTS, ...INSTANCE_EVENT_KINDS]), {
  minItems: 1,
  maxItems: MAX_PATTERNS,
  description: 'Which events it receives: kinds of the group `instance.*`, or the whole group.',
  examples: [[OPERATOR_EVENTS]],
})

const { url, active, description, secret, previousSecretUntil } = endpointSchema.properties

export const operatorEndpointParams = Type.Object({
  id: Type.String({ description: 'The operator endpoint.', examples: ['operator_7k2m9q4w1x8z'] }),
})

export const newOperatorEndpointSchema = Type.Object(
  { ...newEndpointSchema.properties, events: Type.Optional({ ...events, default: [OPERATOR_EVENTS] }) },
  { title: 'NewOperatorEndpoint' },
)

export const operatorEndpointChangesSchema = Type.Partial(Type.Object({ url, events, active, description }), {
  title: 'OperatorEndpointChanges',
})

const count = (of: string) =>
  Type.Integer({
    minimum: 0,
    description: `${of}, over all instances; counted up to ${MAX_COUNTED_DELIVERIES.toLocaleString('en')}.`,
  })

export const operatorEndpointSchema = Type.Object(
  {
    ...operatorEndpointParams.properties,
    url,
    events,
    active,
    description,
    secret,
    previousSecretUntil,
    createdAt: moment('When it was created.'),
    deliveries: Type.Object(
      {
        waiting: count('Deliveries that have not ended'),
        retrying: count('Deliveries that wait for a retry'),
        givenUp: count('Events of the last 7 days whose delivery is exhausted'),
      },
      { title: 'OperatorDeliveries' },
    ),
  },
  {
    title: 'OperatorEndpoint',
    description: 'A URL that receives the events about the connections of all instances, with a secret of its own.',
  },
)

export type OperatorEndpointView = Static<typeof operatorEndpointSchema>

export function operatorEndpointView(
  endpoint: OperatorEndpoint,
  deliveries: OperatorDeliveries,
  now: number,
): OperatorEndpointView {
  const { instanceId: _, ...view } = endpointView({ ...endpoint, instanceId: '' }, now)
  return { ...view, events: view.events as OperatorEndpointView['events'], deliveries: { ...deliveries } }
}
