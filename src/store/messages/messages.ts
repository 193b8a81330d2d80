import type { CommandState, RequestedExtras } from '../../domain/conversation.ts'
import type { EventKind } from '../../domain/events/event.ts'
import type { EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { IncomingMessage, IncomingType } from '../../domain/incoming-message.ts'
import type { FileFacts, GoneReason, MediaForm } from '../../domain/media.ts'
import type { Message, MessageContent, MessageFailure, MessageProgress, MessageState } from '../../domain/message.ts'
import type { Traceparent } from '../../domain/trace-context.ts'
import type { DeliverySummary } from '../deliveries/deliveries.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Lease } from '../leases/leases.ts'

/** A file to send. */
export interface NewMessageFile {
  mediaId: string
  /** Null: the type of the file determines it. */
  form: MediaForm | null
  /** Null: the file's own name. */
  filename: string | null
  /** The file is fetched from this URL. If it is set, `mediaId` is a new ID. */
  url?: string | undefined
}

export type NewMessage = Omit<MessageContent, 'file' | 'extras'> & {
  file?: NewMessageFile | undefined
  extras?: RequestedExtras | undefined
  /** The time of a scheduled message. */
  notBefore?: number | undefined
  /** Created by `newMessageId` at acceptance. Lists and retention use the time in it. */
  id: MessageId
  instanceId: InstanceId
  to: string
  /** The WhatsApp ID of every attempt to send this message, chosen at acceptance. */
  whatsappId: string
  /** The digest covers `to` and the content. The same key with a different digest is refused. */
  idempotency?: { key: string; digest: Uint8Array } | undefined
  /** The trace context of the call. */
  traceparent?: Traceparent | undefined
}

export type AcceptOutcome =
  | { kind: 'accepted'; id: MessageId }
  | { kind: 'replayed'; id: MessageId }
  | { kind: 'key_reused' }
  | { kind: 'not_connected' }
  /** The file does not exist, or its bytes are gone. */
  | { kind: 'no_media' }
  /** The file is still being fetched. */
  | { kind: 'pending_media' }
  /** WhatsApp does not show this type of file in this form or in a link preview, or does not allow a caption with it. */
  | { kind: 'unsupported'; why: 'form' | 'caption' | 'preview' }
  /** The quoted message, or the target of the command, does not exist or does not allow the command. */
  | {
      kind: 'refused'
      code:
        | 'quote_not_found'
        | 'message_not_found'
        | 'chat_not_writable'
        | 'not_own_message'
        | 'not_incoming_message'
        | 'not_editable'
        | 'edit_window_closed'
    }
  /** A node of the previous version is running. It would send the text alone. */
  | { kind: 'old_nodes' }
  /** The instance was deleted after admission. */
  | { kind: 'no_instance' }

/** Without `id`, the message is found only if it is prepared. */
export interface MessageReference {
  id?: MessageId | undefined
  whatsappId: string
}

/** A page of the queue ends with the row that makes it this large, whatever its number of rows. */
export const QUEUED_PAGE_BYTES = 1_048_576

export type QueuedMessage = MessageContent & {
  /** Increases in the order of acceptance; for scheduled messages, in the order in which they become due. */
  seq: number
  id: MessageId
  instanceId: InstanceId
  to: string
  whatsappId: string
  createdAt: number
  /** The last known WhatsApp address of the recipient, even if the look-up has expired; null if unknown. */
  foundAddress: string | null
  /** Set by the first `recordPrepared`; never changed afterwards. */
  prepared: PreparedMessage | null
  /** The stored size of the fields that can be long. */
  bytes: number
  /** The trace context of the call. */
  traceparent?: Traceparent | undefined
}

/** The fields of a queued message that its expiry needs. */
export type QueuedAge = Pick<QueuedMessage, 'seq' | 'id' | 'to' | 'whatsappId' | 'createdAt'> & { isPrepared: boolean }

/** The fields of a stored message that a quotation or a command needs. */
export interface QuotedMessage {
  /** Null for an incoming message. */
  state: MessageState | null
  /** The addresses of its chat: the one in its row, then the one that WhatsApp uses. */
  chats: readonly string[]
  sentAt: number | null
  type: IncomingType
  /** After its last edit. */
  text: string
  /** As it was sent; null if it was received. */
  content: Uint8Array | null
}

export interface PreparedMessage {
  /** WhatsApp's address of the recipient, which may differ from the requested number. */
  address: string
  content: Uint8Array
}

export interface SentMessage extends PreparedMessage {
  /** Its text after the last edit, which is not in `content`. Absent if it was never edited. */
  editedText?: string
}

/** An incoming message as it is stored. */
export interface StoredIncoming extends Omit<IncomingMessage, 'file'> {
  messageId: MessageId
  createdAt: number
  /** When its sender last edited it. */
  editedAt: number | null
  /** When it was deleted for everyone, which erases its text. */
  deletedAt: number | null
  /** Its file, if it has one. */
  media?: ReceivedMedia
}

/** Until the file is stored, `facts` are those that the message states. */
export interface ReceivedMedia {
  id: string
  facts: FileFacts
  state: 'pending' | 'ready' | GoneReason
}

/** `foreign`: the message was prepared for another address. */
export type ProgressOutcome = 'recorded' | 'unchanged' | 'unknown_message' | 'foreign'

/** The outcome of a receipt, and the message that it is about. */
export interface ReceiptOutcome {
  outcome: ProgressOutcome
  messageId: MessageId | null
}

export interface MessageFilter {
  state?: MessageState | undefined
  to?: string | undefined
  /** Part of the recipient, or of the text without regard to case and accents. */
  search?: string | undefined
  since?: number | undefined
  /** Exclusive. */
  until?: number | undefined
}

export interface MessageEvent {
  id: EventId
  kind: EventKind
  timestamp: number
  /** Null if the event has no delivery. */
  delivery: DeliverySummary | null
}

export interface Messages {
  /**
   * Checks the idempotency key, then whether the connection accepts messages (`acceptsMessages`), then inserts; all in one
   * commit. Of concurrent calls with the same key, exactly one is accepted. A key is valid for 24 h after acceptance.
   * The key of a scheduled message is valid until 24 h after the message was sent or has failed.
   */
  accept(message: NewMessage, now: number): Promise<AcceptOutcome>
  find(instanceId: InstanceId, id: MessageId): Promise<Message | null>
  /** A message that `Events.storeIncoming` stored, with its complete text. */
  findIncoming(instanceId: InstanceId, id: MessageId): Promise<StoredIncoming | null>
  /** A page contains at most about 1 MiB of text, or one larger message. */
  list(instanceId: InstanceId, page: PageRequest, filter?: MessageFilter): Promise<Page<Message>>
  /** The events of one message, oldest first. */
  listEvents(instanceId: InstanceId, id: MessageId): Promise<MessageEvent[]>

  /**
   * The first `limit` queued messages in the order of acceptance. Fewer are returned if no more follow, or if these have
   * `QUEUED_PAGE_BYTES` or more together.
   * @param afterSeq only messages above this `seq`
   */
  listQueued(instanceId: InstanceId, limit: number, afterSeq?: number): Promise<QueuedMessage[]>
  /** The same messages without their content, always `limit` of them if there are that many. */
  listQueuedAges(instanceId: InstanceId, limit: number, afterSeq: number): Promise<QueuedAge[]>
  /** The `seq` of the first `limit` queued messages above `afterSeq`, up to and including `toSeq`, in ascending order. */
  listQueuedNumbers(instanceId: InstanceId, afterSeq: number, toSeq: number, limit: number): Promise<readonly number[]>
  /**
   * Stores address and content before the message is first written to a socket. From then on the message counts as written:
   * if it becomes too old, it fails as `unconfirmed` instead of `expired`. The first call wins.
   * @returns the stored values; null if the message has failed and must not be written
   */
  recordPrepared(lease: Lease, id: MessageId, prepared: PreparedMessage): Promise<PreparedMessage | null>
  /** Records that a message goes out without its quote. */
  recordUnquoted(lease: Lease, id: MessageId): Promise<void>
  findCommand(
    instanceId: InstanceId,
    id: MessageId,
  ): Promise<(CommandState & { failure: MessageFailure | null }) | null>
  /**
   * Puts scheduled messages that are due into the order of the queue, in several commits.
   * @returns when the next scheduled message is due; null if there is none
   */
  releaseDue(lease: Lease, now: number): Promise<number | null>
  /** A message in either direction. Null if it is unknown, deleted or erased, except that a failed message is always found. */
  findQuoted(instanceId: InstanceId, id: MessageId): Promise<QuotedMessage | null>
  /**
   * Moves a prepared message forward (`movesTo`). All moves, with their events and deliveries, are one commit. An
   * acknowledgement is `sent`. Each event's timestamp is `now`, but never before the message's previous event.
   */
  recordProgress(lease: Lease, whatsappId: string, reached: MessageProgress, now: number): Promise<ProgressOutcome>
  /**
   * The same for a receipt.
   * @param from addresses of the reporting party; nothing changes unless the message was prepared for one of them
   */
  recordReceipt(
    lease: Lease,
    whatsappId: string,
    reached: MessageProgress,
    now: number,
    from: readonly string[],
  ): Promise<ReceiptOutcome>
  /**
   * `unchanged` unless the message may fail with this code (`canFail`). A prepared message that has expired fails as
   * `unconfirmed`. An unprepared message is found only by its own ID.
   */
  recordFailure(lease: Lease, message: MessageReference, failure: MessageFailure, now: number): Promise<ProgressOutcome>
  /**
   * Fails up to `limit` queued messages, oldest first, after a logout or deletion. Prepared messages may have arrived, so they
   * fail as `unconfirmed`.
   * @returns the number of failed messages; repeat until 0
   */
  recordQueueFailed(lease: Lease, failure: MessageFailure, now: number, limit: number): Promise<number>
  /** The message with this WhatsApp ID, for WhatsApp's requests to send it again. Null if unknown or not prepared. */
  findSent(instanceId: InstanceId, whatsappId: string): Promise<SentMessage | null>
}
