import { type Static, Type } from 'typebox'
import type { Endpoint } from '../../../domain/events/endpoint.ts'
import type { EndpointDeliveries } from '../../../store/statistics/statistics.ts'
import { deliveriesSchema, recentDeliveriesView } from '../activity.ts'
import { moment, nullable, toIso } from '../schema-kit.ts'
import { endpointSchema, endpointView } from './endpoint.ts'

const { secret: _, ...withoutSecret } = endpointSchema.properties

export const endpointHealthSchema = Type.Object(
  {
    ...withoutSecret,
    deliveries: deliveriesSchema,
    waiting: Type.Integer({ description: 'Deliveries that have not ended; counted up to 1,000.' }),
    lastFailure: nullable(
      Type.Object(
        {
          at: moment('When the attempt ended.'),
          status: nullable(
            Type.Integer({ description: 'The HTTP status of the response; null if no status line arrived.' }),
          ),
          error: nullable(Type.String({ description: 'A code such as `timeout`; null if there is a status.' })),
        },
        {
          title: 'FailedAttempt',
          description:
            'The last attempt of an event that is retried, else of the newest event whose delivery is exhausted.',
        },
      ),
    ),
  },
  {
    title: 'EndpointHealth',
    description: 'An endpoint without its secret, and the state of its deliveries.',
  },
)

export type EndpointHealthView = Static<typeof endpointHealthSchema>

export function endpointHealthView(endpoint: Endpoint, found: EndpointDeliveries, now: number): EndpointHealthView {
  const { secret: _secret, ...view } = endpointView(endpoint, now)
  const { recent, waiting, lastFailure } = found
  return {
    ...view,
    deliveries: recentDeliveriesView(recent),
    waiting,
    lastFailure: lastFailure && { ...lastFailure, at: toIso(lastFailure.at) },
  }
}
