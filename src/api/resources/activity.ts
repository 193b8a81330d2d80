import { type Static, Type } from 'typebox'
import type { InstanceActivity } from '../../store/store.ts'
import { instanceIdSchema } from './instance.ts'
import { moment, nullable, toIsoOrNull } from './schema-kit.ts'

export const activitySchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    sentLastHour: Type.Integer({ description: 'Messages accepted within the last hour.' }),
    receivedLastHour: Type.Integer({ description: 'Messages received within the last hour.' }),
    oldestUndeliveredAt: nullable(moment('When the oldest event was made that is still owed to the webhook.')),
  },
  { title: 'Activity', description: 'What an instance is busy with.' },
)

export type ActivityView = Static<typeof activitySchema>

export function activityView({ instanceId, sent, received, oldestOwedAt }: InstanceActivity): ActivityView {
  return {
    instanceId,
    sentLastHour: sent,
    receivedLastHour: received,
    oldestUndeliveredAt: toIsoOrNull(oldestOwedAt),
  }
}
