import type { DeliveryFilter } from '../../domain/events/delivery.ts'
import type { Reach } from '../../domain/events/endpoint.ts'
import type { EventKind } from '../../domain/events/event.ts'
import type { FeedPlace } from '../../domain/events/feed-place.ts'
import type { EndpointId, EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { IncomingChange, IncomingMessage } from '../../domain/incoming-message.ts'
import type { MediaTerms } from '../../domain/media.ts'
import type { AttemptRecord, DeliverySummary } from '../deliveries/deliveries.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Lease } from '../leases/leases.ts'

export interface EventRecord {
  id: EventId
  kind: EventKind
  /** The timestamp in the body. */
  timestamp: number
  createdAt: number
  /** Null for an event about no message, or about one that was received before incoming messages were stored. */
  messageId: MessageId | null
  /** The other party, a number or group. Empty if there is none, or if only a body of more than 16 KiB names it. */
  with: string
  delivery: DeliverySummary | null
}

export interface EventFilter {
  state?: DeliveryFilter | undefined
  kind?: EventKind | undefined
  /** Only events with a delivery to this endpoint, in `state` if given. The record shows that delivery. */
  endpointId?: EndpointId | undefined
}

export interface EventDetail extends EventRecord {
  body: string
  /** The newest 100, oldest first, with the newest 100 attempts. */
  deliveries: (DeliverySummary & { log: AttemptRecord[] })[]
}

/** An event as the feed shows it. */
export interface FeedEvent {
  id: EventId
  /** The number of the event in the feed. */
  seq: number
  kind: EventKind
  body: string
}

export interface FeedQuery {
  /** The page begins with the first event after this place. Undefined: it begins with the oldest event in the feed. */
  after?: FeedPlace | undefined
  limit: number
  /** The largest size of a page's events. The first event is included however large it is. */
  maxBytes: number
  kind?: EventKind | undefined
}

export interface FeedPage {
  /** In the order of their recording. */
  events: FeedEvent[]
  /** The place up to which the page is complete. The next page begins after it. */
  to: FeedPlace
  /** Whether nothing was recorded after `to` when the page was read. */
  isLast: boolean
}

export interface Events {
  // Implemented in `messages/incoming.ts`, because the event and the row of the message are one write.

  /**
   * Stores the message with its event and delivery in one commit. Does nothing if one of its `incomingKeys` is known. A file is
   * added to the `Downloads`, or the event says why it will not be fetched.
   * @param terms null: this node has no storage
   */
  storeIncoming(
    lease: Lease,
    message: IncomingMessage,
    now: number,
    terms?: MediaTerms | null,
  ): Promise<'recorded' | 'duplicate'>
  /**
   * Changes the text of the message that was edited or deleted, in one commit with the event. If the message is unknown, there
   * is only the event. `ignored`: the message is deleted already, or the person may not change it. Only its author may
   * edit it. Only its author and the group's admins may delete it.
   */
  recordChange(lease: Lease, change: IncomingChange, now: number): Promise<'recorded' | 'duplicate' | 'ignored'>
  /** True if `storeIncoming` or `recordChange` would do nothing because one of the message's keys is known. */
  isRecorded(instanceId: InstanceId, message: IncomingMessage | IncomingChange): Promise<boolean>
  list(instanceId: InstanceId, page: PageRequest, filter?: EventFilter): Promise<Page<EventRecord>>
  /** @param reach which deliveries the result contains; default: `own` */
  find(instanceId: InstanceId, id: EventId, reach?: Reach): Promise<EventDetail | null>
  /**
   * Reads a page of the feed. Events appear in the order of their numbers, so no event with a lower number appears
   * after a higher one was read.
   * A page of one kind may be empty although later pages are not.
   * @returns null if an event after `after` was erased, or if `after` is not a place of this feed
   */
  readFeed(instanceId: InstanceId, query: FeedQuery): Promise<FeedPage | null>
  /** The place after the last event. */
  findFeedEnd(instanceId: InstanceId): Promise<FeedPlace>
  /** The bodies of `message.received` events, newest first, as many as fit on a page. */
  listReceived(instanceId: InstanceId, limit: number): Promise<{ id: EventId; createdAt: number; body: string }[]>
}
