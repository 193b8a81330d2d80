import { type Static, Type } from 'typebox'
import { CONNECTION_CAUSES } from '../../domain/connection/connection.ts'
import type { InstanceActivity, InstanceTrouble } from '../../store/statistics/statistics.ts'
import { activitySchema, activityView } from './activity.ts'
import { operatorEndpointSchema } from './events/operator-endpoint.ts'
import { instanceProperties, instanceView } from './instance.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from './schema-kit.ts'

const troubleSchema = Type.Object(
  {
    ...instanceProperties,
    cause: nullable(oneOf(CONNECTION_CAUSES, { description: 'The reason as a stable code.' })),
    since: moment('When the stored state began.'),
    restrictedUntil: nullable(
      moment('Until when WhatsApp does not let the number start conversations; null without a restriction.'),
    ),
    activity: activitySchema,
  },
  { title: 'InstanceInTrouble' },
)

const failingEndpointSchema = Type.Pick(operatorEndpointSchema, ['id', 'url', 'active', 'description', 'deliveries'], {
  title: 'FailingOperatorEndpoint',
})

export const attentionSchema = Type.Object(
  {
    total: Type.Integer({ description: 'How many instances need attention, counted up to 1,000.' }),
    instances: Type.Array(troubleSchema, { description: 'Up to 50 of them, the most urgent first.' }),
    operatorEndpoints: Type.Array(failingEndpointSchema, {
      description: 'Operator endpoints that refuse events or have missed some. Empty unless the caller is an owner.',
    }),
    disk: nullable(
      Type.Object(
        {
          freeBytes: Type.Integer(),
          totalBytes: Type.Integer(),
          isNearlyFull: Type.Boolean({
            description: 'If true, free up space now: on a full disk the service refuses calls.',
          }),
        },
        { description: 'Null for viewers, and for accounts that are limited to some instances.' },
      ),
    ),
  },
  {
    title: 'Attention',
    description:
      'What needs attention: numbers that are stopped, logged out, disconnected or restricted; webhooks and operator ' +
      'endpoints that refuse events or have missed some in the last 7 days; the disk of the answering node.',
  },
)

export type AttentionView = Static<typeof attentionSchema>

export type FailingEndpointView = Static<typeof failingEndpointSchema>

export type TroubleView = Static<typeof troubleSchema>

export function troubleView(trouble: InstanceTrouble, activity: InstanceActivity): TroubleView {
  return {
    ...instanceView(trouble.instance),
    cause: trouble.cause,
    since: toIso(trouble.since),
    restrictedUntil: toIsoOrNull(trouble.restrictedUntil),
    activity: activityView(activity),
  }
}
