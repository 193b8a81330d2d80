import type { EventKind, IncomingMessage } from '../../domain/event.ts'
import type { EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { Message, MessageFailure, MessageProgress, MessageState } from '../../domain/message.ts'
import type { DeliverySummary } from '../deliveries/deliveries.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Lease } from '../leases/leases.ts'

export interface NewMessage {
  /** Of `newMessageId` at the moment of acceptance: lists and retention go by the time in it. */
  id: MessageId
  instanceId: InstanceId
  to: string
  text: string
  /** The id under which every attempt goes out, chosen at acceptance. */
  whatsappId: string
  /** The digest is over `to` and `text`; the same key with another digest is refused. */
  idempotency?: { key: string; digest: Uint8Array } | undefined
}

export type AcceptOutcome =
  | { kind: 'accepted'; id: MessageId }
  | { kind: 'replayed'; id: MessageId }
  | { kind: 'key_reused' }
  | { kind: 'not_connected' }
  /** Deleted between admission and now. */
  | { kind: 'no_instance' }

/** A message whose own id may not be known: by WhatsApp's alone it is found from its preparation on. */
export interface MessageReference {
  id?: MessageId | undefined
  whatsappId: string
}

/** A message waiting to be sent. */
export interface QueuedMessage {
  /** Grows in the order of acceptance. */
  seq: number
  id: MessageId
  instanceId: InstanceId
  to: string
  text: string
  whatsappId: string
  createdAt: number
  /** What WhatsApp said last of the number, also when that is too long ago to go by; null when it is not known. */
  foundAddress: string | null
  /** Fixed by the first `recordPrepared`: where it goes on WhatsApp, and the encoded content, byte for byte. */
  prepared: PreparedMessage | null
}

export interface PreparedMessage {
  /** WhatsApp's address of the recipient, which may differ from the number asked for. */
  address: string
  content: Uint8Array
}

/** An incoming message as it is stored. */
export interface StoredIncoming extends IncomingMessage {
  messageId: MessageId
  createdAt: number
}

/** `foreign`: the message went to another address. */
export type ProgressOutcome = 'recorded' | 'unchanged' | 'unknown_message' | 'foreign'

export interface MessageFilter {
  state?: MessageState | undefined
  to?: string | undefined
  since?: number | undefined
  /** Exclusive. */
  until?: number | undefined
}

export interface MessageEvent {
  id: EventId
  kind: EventKind
  timestamp: number
  /** Null: made while no URL was set. */
  delivery: DeliverySummary | null
}

export interface Messages {
  /**
   * Order of checks: replay of the idempotency key, then connection (`currentState` accepts messages), then the
   * insert; all in one commit, so that of calls that race with one key exactly one is accepted. A key counts for
   * 24 h from its acceptance.
   */
  accept(message: NewMessage, now: number): Promise<AcceptOutcome>
  find(instanceId: InstanceId, id: MessageId): Promise<Message | null>
  /** One that `Events.recordIncoming` stored, with its whole text. */
  findIncoming(instanceId: InstanceId, id: MessageId): Promise<StoredIncoming | null>
  list(instanceId: InstanceId, page: PageRequest, filter?: MessageFilter): Promise<Page<Message>>
  /** The events of one message, oldest first. */
  listEvents(instanceId: InstanceId, id: MessageId): Promise<MessageEvent[]>

  /** The first `limit` queued messages in the order accepted; only those above `afterSeq` where it is given. */
  listQueued(instanceId: InstanceId, limit: number, afterSeq?: number): Promise<QueuedMessage[]>
  /**
   * Fixes address and content before the message is first written to a socket: from here on it counts as written
   * (`unconfirmed`, not `expired`, when it becomes too old). The first one wins: returns what is stored.
   */
  recordPrepared(lease: Lease, id: MessageId, prepared: PreparedMessage): Promise<PreparedMessage>
  /**
   * Moves the message forward as `movesTo` has it, each move with its event and delivery, in one commit.
   * An acknowledgement is `sent`. Matched by WhatsApp's id, by which it is found from its preparation on. Each event's
   * timestamp is `now`, but never before the message's previous event.
   * @param from addresses of the one who says so: nothing changes unless the message was prepared for one of them
   */
  recordProgress(
    lease: Lease,
    whatsappId: string,
    reached: MessageProgress,
    now: number,
    from?: readonly string[],
  ): Promise<ProgressOutcome>
  /** `unchanged` unless the message is queued or sent (`canFail`). One that is not prepared is found by its own id only. */
  recordFailure(lease: Lease, message: MessageReference, failure: MessageFailure, now: number): Promise<ProgressOutcome>
  /**
   * Fails up to `limit` queued messages, oldest first (logout, deletion); returns how many. Repeat until 0. Those that are
   * prepared may have arrived: they fail as `unconfirmed`.
   */
  recordQueueFailed(lease: Lease, failure: MessageFailure, now: number, limit: number): Promise<number>
  /** The message sent under this id, for WhatsApp's requests to send it again; null if unknown or not yet prepared. */
  findSent(instanceId: InstanceId, whatsappId: string): Promise<PreparedMessage | null>
}
