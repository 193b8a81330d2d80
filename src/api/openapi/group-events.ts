import { type TSchema, Type } from 'typebox'
import { type GroupEventKind, groupBody } from '../../domain/events/event.ts'
import type { InstanceId } from '../../domain/ids.ts'
import { GROUP_CHANGES, type GroupDifference } from '../../domain/recipients/group.ts'
import { senderProperties } from '../resources/incoming-message.ts'
import { nullable, oneOf } from '../resources/schema-kit.ts'

const GROUP = '120363041234567890@g.us'
const ANA = { phone: '5511987654321', lid: '990000007654321@lid', role: 'member' } as const
const GROUP_FACTS = { id: GROUP, subject: 'Team', memberCount: 12, canSend: true, isAdmin: false }

const memberList = Type.Optional(
  Type.Array(
    Type.Object({
      phone: nullable({ ...senderProperties.from, description: 'The number, digits only; null if unknown.' }),
      lid: nullable({ ...senderProperties.lid, description: 'The LID address; null if unknown.' }),
    }),
    { description: 'Absent if there is none.' },
  ),
)

const groupIdentity = { group: Type.String({ examples: [GROUP] }), subject: Type.String() }
const groupFacts = {
  ...groupIdentity,
  memberCount: Type.Integer(),
  canSend: Type.Boolean({ description: 'Whether the number may write to the group.' }),
  isAdmin: Type.Boolean(),
}
/** The `data` of each event about a group. */
export const GROUP_DATA: Readonly<Record<GroupEventKind, TSchema>> = {
  'group.joined': Type.Object(groupFacts, { additionalProperties: false }),
  'group.left': Type.Object(groupIdentity, { additionalProperties: false }),
  'group.changed': Type.Object(
    {
      ...groupFacts,
      changed: Type.Array(oneOf(GROUP_CHANGES), { description: 'What has changed.' }),
      added: memberList,
      removed: memberList,
      promoted: memberList,
      demoted: memberList,
    },
    { additionalProperties: false },
  ),
}

export function groupExample(kind: GroupEventKind, instanceId: InstanceId, at: number): unknown {
  const added: GroupDifference = { changed: ['members'], added: [ANA], removed: [], promoted: [], demoted: [] }
  return JSON.parse(groupBody(kind, instanceId, GROUP_FACTS, kind === 'group.changed' ? added : null, at))
}
