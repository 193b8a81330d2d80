import { type GroupEventKind, groupBody } from '../../domain/events/event.ts'
import { type InstanceId, newEventId } from '../../domain/ids.ts'
import {
  differenceOf,
  factsOf,
  type GroupDetails,
  type GroupDifference,
  type OwnAddresses,
} from '../../domain/recipients/group.ts'
import type { NewEvent } from '../events/event-recorder.ts'

interface GroupTransition {
  before: GroupDetails | null
  /** Null: the account is not a member any more. */
  after: GroupDetails | null
  self: OwnAddresses
  /** WhatsApp reported that the account has just become a member. If not, a new group causes no event. */
  hasJoined: boolean
}

/** The event that reports the transition of a group; none if callers can see no difference. */
export function groupEventsOf(instanceId: InstanceId, transition: GroupTransition, now: number): NewEvent[] {
  const { before, after, self, hasJoined } = transition
  if (after === null) return before === null ? [] : [eventOf('group.left', instanceId, before, self, null, now)]
  if (before === null) return hasJoined ? [eventOf('group.joined', instanceId, after, self, null, now)] : []
  const difference = differenceOf(before, after, self)
  return difference.changed.length === 0 ? [] : [eventOf('group.changed', instanceId, after, self, difference, now)]
}

function eventOf(
  kind: GroupEventKind,
  instance_id: InstanceId,
  group: GroupDetails,
  self: OwnAddresses,
  difference: GroupDifference | null,
  now: number,
): NewEvent {
  return {
    instance_id,
    id: newEventId(now),
    kind,
    timestamp: now,
    created_at: now,
    message_id: null,
    incoming_digest: null,
    body: groupBody(kind, instance_id, { id: group.id, ...factsOf(group, self) }, difference, now),
  }
}
