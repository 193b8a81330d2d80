import { type Static, Type } from 'typebox'
import { DELIVERY_HEALTHS, deliveryHealth } from '../../domain/delivery.ts'
import type { InstanceActivity } from '../../store/statistics/statistics.ts'
import { instanceIdSchema } from './instance.ts'
import { moment, nullable, oneOf, toIsoOrNull } from './schema-kit.ts'

const deliveriesSchema = Type.Object(
  {
    health: oneOf(DELIVERY_HEALTHS, {
      description:
        '`idle`: no event has been delivered or given up; `working`; `retrying`: events failed and are tried again; ' +
        '`failing`: the event that ended last was given up; `missed`: it works, and events of the last 7 days were given ' +
        'up and not delivered since.',
    }),
    retrying: Type.Integer({ description: 'Events that failed and are tried again; counted up to 1,000.' }),
    givenUp: Type.Integer({
      description: 'Events of the last 7 days that were given up and not delivered since; counted up to 1,000.',
    }),
    lastDeliveredAt: nullable(moment('When the newest event that the webhook took was delivered.')),
    lastGivenUpAt: nullable(moment('When the newest of the events in `givenUp` was given up.')),
  },
  { title: 'DeliveryHealth', description: 'How the webhook of an instance takes its events.' },
)

export const activitySchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    sentLastHour: Type.Integer({ description: 'Messages accepted within the last hour.' }),
    receivedLastHour: Type.Integer({ description: 'Messages received within the last hour.' }),
    oldestUndeliveredAt: nullable(moment('When the oldest event was made whose delivery has not ended.')),
    deliveries: deliveriesSchema,
  },
  { title: 'Activity', description: 'What an instance is busy with.' },
)

export type ActivityView = Static<typeof activitySchema>

export function activityView({
  instanceId,
  sent,
  received,
  oldestUndeliveredAt,
  deliveries,
}: InstanceActivity): ActivityView {
  return {
    instanceId,
    sentLastHour: sent,
    receivedLastHour: received,
    oldestUndeliveredAt: toIsoOrNull(oldestUndeliveredAt),
    deliveries: {
      health: deliveryHealth(deliveries),
      retrying: deliveries.retrying,
      givenUp: deliveries.givenUp,
      lastDeliveredAt: toIsoOrNull(deliveries.lastDeliveredAt),
      lastGivenUpAt: toIsoOrNull(deliveries.lastGivenUpAt),
    },
  }
}
