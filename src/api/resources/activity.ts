import { type Static, Type } from 'typebox'
import { DELIVERY_HEALTHS, deliveryHealth, type RecentDeliveries } from '../../domain/events/delivery.ts'
import type { InstanceActivity } from '../../store/statistics/statistics.ts'
import { instanceIdSchema } from './instance.ts'
import { moment, nullable, oneOf, toIsoOrNull } from './schema-kit.ts'

export const deliveriesSchema = Type.Object(
  {
    health: oneOf(DELIVERY_HEALTHS, {
      description:
        '`idle`: no delivery has ended; `working`; `retrying`: some deliveries are being retried; `failing`: the ' +
        'last delivery that ended is exhausted; `missed`: deliveries succeed now, but some events of the last ' +
        '7 days are exhausted.',
    }),
    retrying: Type.Integer({ description: 'Deliveries that failed and are being retried; counted up to 1,000.' }),
    givenUp: Type.Integer({
      description:
        'Events of the last 7 days that are exhausted and were not delivered later; counted up to 1,000. Deleted ' +
        'endpoints do not count: if there are any, only the newest 2,000 deliveries that were given up are read.',
    }),
    lastDeliveredAt: nullable(moment('When the newest delivered event was delivered.')),
    lastGivenUpAt: nullable(moment('When the newest event in `givenUp` became exhausted.')),
  },
  { title: 'DeliveryHealth', description: 'The state of the deliveries to the webhook of an instance.' },
)

export const activitySchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    sentLastHour: Type.Integer({
      description: 'Messages accepted within the last hour that WhatsApp acknowledged and that have not failed.',
    }),
    failedLastHour: Type.Integer({ description: 'Messages accepted within the last hour that failed.' }),
    queuedLastHour: Type.Integer({ description: 'Messages accepted within the last hour that are still queued.' }),
    receivedLastHour: Type.Integer({ description: 'Messages received within the last hour.' }),
    oldestUndeliveredAt: nullable(moment('When the oldest event with a pending delivery was created.')),
    deliveries: deliveriesSchema,
  },
  { title: 'Activity', description: 'The recent traffic of an instance.' },
)

export type ActivityView = Static<typeof activitySchema>

export function activityView({
  instanceId,
  sent,
  failed,
  queued,
  received,
  oldestUndeliveredAt,
  deliveries,
}: InstanceActivity): ActivityView {
  return {
    instanceId,
    sentLastHour: sent,
    failedLastHour: failed,
    queuedLastHour: queued,
    receivedLastHour: received,
    oldestUndeliveredAt: toIsoOrNull(oldestUndeliveredAt),
    deliveries: recentDeliveriesView(deliveries),
  }
}

export function recentDeliveriesView(recent: RecentDeliveries) {
  const { retrying, givenUp, lastDeliveredAt, lastGivenUpAt } = recent
  const times = { lastDeliveredAt: toIsoOrNull(lastDeliveredAt), lastGivenUpAt: toIsoOrNull(lastGivenUpAt) }
  return { health: deliveryHealth(recent), retrying, givenUp, ...times }
}
