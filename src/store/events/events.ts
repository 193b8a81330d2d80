import type { DeliveryState } from '../../domain/delivery.ts'
import type { EventKind } from '../../domain/event.ts'
import type { EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { IncomingMessage } from '../../domain/incoming-message.ts'
import type { AttemptRecord, DeliverySummary } from '../deliveries/deliveries.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Lease } from '../leases/leases.ts'

export interface EventRecord {
  id: EventId
  kind: EventKind
  /** The timestamp in the body. */
  timestamp: number
  createdAt: number
  /** Null for a message received before incoming messages were stored. */
  messageId: MessageId | null
  /** The other party, a number or group. Empty for an event with a long body that is older than stored incoming messages. */
  with: string
  delivery: DeliverySummary | null
}

export interface EventDetail extends EventRecord {
  body: string
  /** Oldest first. */
  deliveries: (DeliverySummary & { log: AttemptRecord[] })[]
}

export interface Events {
  // Implemented beside the messages, in `messages/incoming.ts`, because the event and the row of the message are one write.

  /** Stores the message with its event and delivery in one commit. Does nothing if one of its `incomingKeys` is known. */
  recordIncoming(lease: Lease, message: IncomingMessage, now: number): Promise<'recorded' | 'duplicate'>
  /** True if `recordIncoming` would do nothing. */
  isRecorded(instanceId: InstanceId, message: IncomingMessage): Promise<boolean>
  list(
    instanceId: InstanceId,
    page: PageRequest,
    filter?: { state?: DeliveryState | undefined; kind?: EventKind | undefined },
  ): Promise<Page<EventRecord>>
  find(instanceId: InstanceId, id: EventId): Promise<EventDetail | null>
  /** The bodies of `message.received` events, newest first. */
  listReceived(instanceId: InstanceId, limit: number): Promise<{ id: EventId; createdAt: number; body: string }[]>
}
