import type { ConnectionGoal, ConnectionState, StoredConnection } from '../domain/connection.ts'
import type { AfterAttempt, DeliveryState, RecentDeliveries } from '../domain/delivery.ts'
import type { EventKind, IncomingMessage } from '../domain/event.ts'
import type { EventId, InstanceId, MessageId } from '../domain/ids.ts'
import type { Instance, InstanceKind, SigningSecrets, Webhook } from '../domain/instance.ts'
import type { Message, MessageFailure, MessageProgress, MessageState } from '../domain/message.ts'
import type { PhoneNumber } from '../domain/recipient.ts'
import type { StoreClock } from './clock.ts'
import type { Hints } from './hints.ts'

/**
 * Everything that Pombal remembers, on SQLite or PostgreSQL alike (`test/contract` holds both to these promises).
 *
 * - A promise that resolves to a recorded fact means: committed and synced.
 * - Every method is one commit, or reads one consistent state. None speaks to the network but to the database.
 * - What an owner writes takes its `Lease` and is fenced by it: if the lease has moved on, nothing is written and
 *   `LeaseLost` is thrown.
 * - A store that cannot be reached, or is closing, throws `StoreUnavailable`; whether a write happened is then unknown.
 * - After a commit that somebody waits for, `hints` says where to look. A hint may be lost; nothing depends on it.
 * - Moments are milliseconds since 1970. `now` is the caller's clock and only ever stamps rows; leases, rate windows
 *   and the age of a connection use the store's own clock.
 */
export interface Store {
  readonly clock: StoreClock
  readonly hints: Hints
  readonly admission: Admission
  readonly instances: Instances
  readonly connections: Connections
  readonly messages: Messages
  readonly events: Events
  readonly deliveries: Deliveries
  readonly leases: Leases
  readonly credentials: Credentials
  readonly numbers: Numbers
  readonly sandbox: SandboxStorage
  readonly phoneOrders: PhoneOrders
  readonly retention: Retention
  readonly statistics: Statistics
  readonly sessions: Sessions
  /** Writes a row and resolves when it is on the disk; throws `StoreUnavailable` otherwise. */
  ping(): Promise<void>
  /** Finishes the writes already accepted, then closes. Later calls throw `StoreUnavailable`. */
  close(): Promise<void>
}

/** The right to act for an instance, granted to one owner at a time; `epoch` grows with every new owner. */
export interface Lease {
  readonly instanceId: InstanceId
  readonly owner: string
  readonly epoch: number
}

export interface HeldLease extends Lease {
  readonly kind: InstanceKind
}

/** One page of a list, newest first unless said otherwise. `nextCursor` is opaque; null at the end. */
export interface Page<T> {
  data: T[]
  nextCursor: string | null
}

export interface PageRequest {
  /** A `nextCursor`; anything else throws `InvalidCursor`. */
  cursor?: string | undefined
  /** 1–200. */
  limit: number
}

// ── Callers ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Who is calling, and whether the call is within the rate (decisions §2). */
export interface Admitted {
  instanceId: InstanceId
  /** False: this call is over the limit. */
  withinRate: boolean
  limit: number
  /** Calls left in the window after this one, never below 0. */
  remaining: number
  /** Milliseconds until the window ends. */
  resetMs: number
}

export interface Admission {
  /**
   * Finds the instance of a token, by its digest in hexadecimal digits, and counts the call against it: 100 (setting) per window of 60 s that opens with the
   * first call. Null for a token that is unknown (or whose instance was deleted), which counts nowhere. A replaced
   * token is unknown at once. In memory on SQLite, one round trip and the database's clock on PostgreSQL.
   */
  admit(tokenDigest: string): Promise<Admitted | null>
}

// ── Instances ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface NewInstance {
  id: InstanceId
  name: string
  kind: InstanceKind
  tokenDigest: Uint8Array
  webhookSecret: string
  /** `online` for a sandbox, which links by itself; `idle` for a number that somebody will link. */
  goal: ConnectionGoal
}

export interface Instances {
  create(instance: NewInstance, now: number): Promise<Instance>
  /** Null also for a deleted one, as everywhere in this interface. */
  find(id: InstanceId): Promise<Instance | null>
  list(page: PageRequest, filter?: { search?: string | undefined }): Promise<Page<Instance>>
  rename(id: InstanceId, name: string): Promise<Instance | null>
  /** False when there is no such instance. */
  replaceToken(id: InstanceId, tokenDigest: Uint8Array): Promise<boolean>
  /**
   * One commit: the token is dead, the WhatsApp credentials are erased, the lease's epoch is raised so that no late
   * write of its connection gets through, and the instance is marked deleted. What is owed to its webhook stays.
   * False when there is no such instance.
   */
  delete(id: InstanceId, now: number): Promise<boolean>
  /** Deleted instances whose rows are still there, for the owner to wind up. */
  listDeleted(): Promise<InstanceId[]>
  /**
   * The last step of a deletion: erases every row of a deleted instance, in small steps. Does nothing and returns
   * false while a message is queued or a delivery is owed.
   */
  erase(lease: Lease): Promise<boolean>
  findWebhook(id: InstanceId): Promise<Webhook | null>
  /** Binds the events made from now on to `url` (null: they are kept and not posted). Earlier deliveries stay. */
  setWebhookUrl(id: InstanceId, url: string | null): Promise<Webhook | null>
  /** The old secret stays beside the new one for 24 h from `now`. */
  replaceWebhookSecret(id: InstanceId, secret: string, now: number): Promise<Webhook | null>
  /** When the present webhook secret came into force; null for the one that the instance was made with. */
  findSecretChangedAt(id: InstanceId): Promise<number | null>
  /** What to sign with at `now`; also for a deleted instance that still owes deliveries. */
  findSigningSecrets(id: InstanceId, now: number): Promise<SigningSecrets | null>
}

// ── Connections ─────────────────────────────────────────────────────────────────────────────────────────────────

/** The stored connection and the instance's kind, which says where to connect to. */
export interface ConnectionRecord extends StoredConnection {
  instanceId: InstanceId
  kind: InstanceKind
  deleted: boolean
}

/** How a connection is doing, as its owner last told. */
export interface ConnectionHealth {
  /** When WhatsApp last sent anything at all. */
  lastFrameAt: number | null
  /** The latest message that WhatsApp acknowledged: when, and how long after it was handed to the socket. */
  acknowledgement: { at: number; latencyMs: number } | null
  /** How often an incoming message could not be decrypted, since the instance was made. */
  undecryptable: number
  lastUndecryptableAt: number | null
  /** Why sockets ended within the last 24 hours, by code, the latest first. */
  closes: { code: number; count: number; lastAt: number }[]
}

/** The same as its owner tells it; of the closes only those not told before. */
export interface HealthReport extends Omit<ConnectionHealth, 'closes'> {
  closes: readonly { at: number; code: number }[]
}

export interface Connections {
  /** Also for a deleted instance whose rows are still there. */
  find(id: InstanceId): Promise<ConnectionRecord | null>
  /** Asks the owner to link (QR, or pairing code for `pairingPhone`), or to resume a stopped one. */
  requestConnect(id: InstanceId, pairingPhone: PhoneNumber | null): Promise<boolean>
  /** Asks the owner to unlink the number. */
  requestLogout(id: InstanceId): Promise<boolean>
  /**
   * The owner tells what is the case. `since` moves only when `state` changes; `lastConnectedAt` is set by the store
   * while the state is, or stops being, `connected`. With `ifGoalVersion`, `goal` is left alone once there is a newer wish.
   */
  record(
    lease: Lease,
    change: Partial<
      Pick<
        StoredConnection,
        | 'state'
        | 'reason'
        | 'cause'
        | 'goal'
        | 'qr'
        | 'qrExpiresAt'
        | 'pairingCode'
        | 'phone'
        | 'retryAt'
        | 'restriction'
      >
    > & { ifGoalVersion?: number },
    now: number,
  ): Promise<void>
  /** What the owner has seen, in place of what it told before. Taken twice without harm. */
  recordHealth(lease: Lease, report: HealthReport, now: number): Promise<void>
  findHealth(id: InstanceId, now: number): Promise<ConnectionHealth>
}

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────────

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

// ── Events and deliveries ───────────────────────────────────────────────────────────────────────────────────────

export interface DeliverySummary {
  id: string
  url: string
  state: DeliveryState
  /** Attempts made so far. */
  attempts: number
  /** When the next attempt is due; null when none will come. */
  nextAttemptAt: number | null
  /** Asked for by a person: outside the order. */
  redelivery: boolean
}

export interface EventRecord {
  id: EventId
  kind: EventKind
  /** The timestamp in the body. */
  timestamp: number
  createdAt: number
  /** Null for a message received before incoming messages were stored. */
  messageId: MessageId | null
  /** The number or group on the other side; empty for a long body of a message received before these were stored. */
  with: string
  /** The latest delivery. */
  delivery: DeliverySummary | null
}

export interface AttemptRecord {
  attemptNumber: number
  url: string
  startedAt: number
  durationMs: number
  /** Null when no status line came. */
  status: number | null
  /** A stable code such as `timeout` or `blocked_address`; null when a status line came. */
  error: string | null
  /** The beginning of the answer's body, at most 1 KiB. */
  responseExcerpt: string | null
}

export interface EventDetail extends EventRecord {
  /** The bytes posted. */
  body: string
  /** Oldest first. */
  deliveries: (DeliverySummary & { log: AttemptRecord[] })[]
}

export interface Events {
  /** Stores the message with its event and delivery, in one commit; nothing where one of its `incomingKeys` is known. */
  recordIncoming(lease: Lease, message: IncomingMessage, now: number): Promise<'recorded' | 'duplicate'>
  list(
    instanceId: InstanceId,
    page: PageRequest,
    filter?: { state?: DeliveryState | undefined; kind?: EventKind | undefined },
  ): Promise<Page<EventRecord>>
  find(instanceId: InstanceId, id: EventId): Promise<EventDetail | null>
  /** What came in, newest first, with its body. */
  listReceived(instanceId: InstanceId, limit: number): Promise<{ id: EventId; createdAt: number; body: string }[]>
}

/** A delivery whose next attempt may start, with all that the attempt needs but the secret. */
export interface DueDelivery {
  /** Grows in the order of the events. */
  seq: number
  id: string
  instanceId: InstanceId
  eventId: EventId
  kind: EventKind
  url: string
  body: Uint8Array
  /** The attempt to make, from 1. */
  attemptNumber: number
  dueAt: number
  /** Of a retry: when the attempt before it failed, on the clock of `dueAt`; null where that is not known. */
  failedAt: number | null
}

export type RedeliverOutcome = 'queued' | 'no_event' | 'no_webhook' | 'still_pending'

export interface Deliveries {
  /** Deliveries that were never tried and wait for nothing, in the order of the events, above `afterSeq`. */
  listFirst(instanceId: InstanceId, afterSeq: number, limit: number): Promise<DueDelivery[]>
  /** Deliveries that failed before and are due at or before `dueBefore`, earliest due first, above (dueAt, seq). */
  listRetries(
    instanceId: InstanceId,
    after: { dueAt: number; seq: number },
    dueBefore: number,
    limit: number,
  ): Promise<DueDelivery[]>
  /** When the earliest retry of the instance is due; null without any. */
  findNextRetryAt(instanceId: InstanceId): Promise<number | null>
  /**
   * One commit: the attempt's row, and what follows: delivered or exhausted (its successor becomes ready, due at
   * once), or due again. Does nothing if this attempt was recorded before.
   */
  recordAttempt(lease: Lease, delivery: DueDelivery, attempt: AttemptRecord, then: AfterAttempt): Promise<void>
  /** A new delivery of the same bytes to the URL now in force, six attempts of its own, outside the order. */
  redeliver(instanceId: InstanceId, eventId: EventId, now: number): Promise<RedeliverOutcome>
  /** The same for every event made since `since` whose latest delivery is in `state`, in small steps; how many. */
  redeliverSince(
    instanceId: InstanceId,
    since: number,
    state: 'delivered' | 'exhausted',
    now: number,
  ): Promise<{ kind: 'queued'; count: number } | { kind: 'no_webhook' }>
}

// ── Ownership ───────────────────────────────────────────────────────────────────────────────────────────────────

/** What a node is told when it shows that it is there. */
export interface Attendance {
  /** How many of all instances of each kind it should run; the shares of all nodes add up to all of them. */
  shares: Readonly<Record<InstanceKind, number>>
  /** Kinds of which it may take what is left over: those that it runs, and those that no node runs. */
  leftOver: readonly InstanceKind[]
  nodes: number
  /** Until the first lease of another node lapses unless it is renewed; null where there is none. */
  nextLapseMs: number | null
}

export interface Leases {
  /**
   * Takes up to `limit` instances (deleted ones included, while their rows are there) whose lease is free or has lapsed,
   * each under a higher epoch. @param kinds by default all
   */
  acquire(owner: string, limit: number, kinds?: readonly InstanceKind[]): Promise<HeldLease[]>
  /** The same, only of those that have been free for 5 s: no other node took them. */
  acquireLeftOver(owner: string, limit: number, kinds?: readonly InstanceKind[]): Promise<HeldLease[]>
  /** Counts the owner among the nodes for 8 s. @param runs the kinds of instances that it can run; by default all */
  attend(owner: string, runs?: readonly InstanceKind[]): Promise<Attendance>
  /** The owner counts no more. */
  leave(owner: string): Promise<void>
  /** Prolongs all of the owner's leases by 15 s, in one statement; returns those that still hold. */
  renew(owner: string): Promise<HeldLease[]>
  /** Gives one up at once. */
  release(lease: Lease): Promise<void>
}

/** WhatsApp credentials and Signal keys: opaque bytes by type and id, encrypted at rest. */
export interface Credentials {
  get(instanceId: InstanceId, type: string, ids: readonly string[]): Promise<Map<string, Uint8Array>>
  /** All changes or none. A null value deletes. */
  set(lease: Lease, changes: readonly { type: string; id: string; value: Uint8Array | null }[]): Promise<void>
  /** All of it, and who the account's contacts are. */
  clear(lease: Lease): Promise<void>
}

/** What WhatsApp said of a number; `address` null: it is not on WhatsApp. */
export interface LookedUpNumber {
  address: string | null
  expiresAt: number
}

export interface Numbers {
  /** Null when not asked yet, or too long ago: 7 days for a number found, 1 hour for one not found. */
  find(instanceId: InstanceId, number: PhoneNumber, now: number): Promise<LookedUpNumber | null>
  record(lease: Lease, number: PhoneNumber, address: string | null, now: number): Promise<void>
  /**
   * Whether since the account was linked one of these numbers has written to the instance (not merely in a group), or a
   * message to it was acknowledged. Noted in the commit of that event; it outlives retention.
   */
  isContact(instanceId: InstanceId, numbers: readonly PhoneNumber[]): Promise<boolean>
}

/** What the simulated network remembers of each instance. */
export interface SandboxStorage {
  read(instanceId: InstanceId): Promise<ReadonlyMap<string, Uint8Array>>
  write(lease: Lease, changes: readonly { key: string; value: Uint8Array | null }[]): Promise<void>
}

/** What any node asks of an instance's simulated phone, which its owner runs. `asked` hints both ways. */
export interface PhoneOrders {
  /** @param id new for each order; the same one again is only a reminder */
  leave(instanceId: InstanceId, id: string, body: string): Promise<void>
  /** What was left, oldest first; each is given out once. */
  take(lease: Lease): Promise<{ id: string; body: string }[]>
  answer(lease: Lease, id: string, answer: string): Promise<void>
  /** Null: not answered yet. An answer is given out once. */
  takeAnswer(instanceId: InstanceId, id: string): Promise<string | null>
}

// ── For people ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface InstanceActivity {
  instanceId: InstanceId
  /** Messages accepted, and messages received, since the moment asked for. */
  sent: number
  received: number
  /** When the oldest event was made whose delivery has not ended; null when nothing is owed. */
  oldestOwedAt: number | null
  /** Counts go up to `MAX_RECENT`. */
  deliveries: RecentDeliveries
}

/** Deliveries that are counted for a list of instances are counted no further than this. */
export const MAX_RECENT = 1_000

/** What became of the events made in a span of time. */
export interface DeliveryOutcomes {
  /** Delivered by the first attempt. */
  first: number
  /** Delivered by a later attempt or a redelivery. */
  retried: number
  exhausted: number
  /** Pending or blocked. */
  waiting: number
  /** Made while no URL was set. */
  notPosted: number
  /**
   * How many of those delivered without a redelivery took at most `LATENCY_BOUNDS_MS[i]` from the event to the end of
   * the attempt that succeeded; not cumulative; the last entry counts those above every bound.
   */
  latencies: number[]
}

/** Upper bounds in milliseconds; they follow the schedule of the attempts. */
export const LATENCY_BOUNDS_MS = [
  10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 150_000, 300_000, 800_000,
] as const

/** Nothing here is counted further than this. */
export const MAX_COUNTED = 10_000

/** Nothing of a whole store is counted further than this. */
export const MAX_TOTAL = 100_000

/** A store at a glance, the same on every node. Ages are milliseconds on the store's own clock. */
export interface StoreTotals {
  /** Messages that wait to be sent; `MAX_TOTAL` where it is more. */
  queued: number
  /** Of the message that has waited longest; 0 without any. */
  oldestQueuedMs: number
  /** Deliveries that have not ended: never tried, failed before, waiting for another; each up to `MAX_TOTAL`. */
  deliveries: { first: number; retry: number; blocked: number }
  /** How long the delivery that is due for longest has been due; 0 when none is. */
  oldestDueMs: number
  connections: Record<ConnectionState, number>
  /** Instances that no node runs. */
  unowned: number
  bytes: number
}

export interface Statistics {
  /** Costs a few look-ups for each instance, and counting up to `MAX_TOTAL`. */
  totals(): Promise<StoreTotals>
  /**
   * In no order; unknown instances are counted as idle. Messages are counted from `since` on, events that were given up from
   * `givenUpSince`.
   */
  activity(ids: readonly InstanceId[], since: number, givenUpSince: number): Promise<InstanceActivity[]>
  outcomes(instanceId: InstanceId, since: number, until: number): Promise<DeliveryOutcomes>
  /** How many events made since `since` ended so, by their latest delivery; `MAX_COUNTED` where it is more. */
  countEnded(instanceId: InstanceId, since: number, state: 'delivered' | 'exhausted'): Promise<number>
  /** Redeliveries that have not ended; `MAX_COUNTED` where it is more. */
  countRedelivering(instanceId: InstanceId): Promise<number>
}

/** Somebody signed in to the panel. Moments are milliseconds since 1970. */
export interface PanelSession {
  id: string
  createdAt: number
  expiresAt: number
  /** The browser's User-Agent, cut off; null where it sent none. */
  userAgent: string | null
}

/** Wrong keys that came from one address in the window that is open, and the milliseconds until it ends. */
export interface WrongKeyCount {
  count: number
  endsInMs: number
}

export interface Sessions {
  create(session: PanelSession & { tokenDigest: Uint8Array }): Promise<void>
  /** Null for one that is unknown, ended, or expired at `now`. */
  find(tokenDigest: Uint8Array, now: number): Promise<PanelSession | null>
  /** Newest first; those expired at `now` are erased. */
  list(now: number): Promise<PanelSession[]>
  /** Ends one; nothing happens if it is not there. */
  end(id: string): Promise<void>
  /** The panel password's hash, in the form its maker gave it; null while none is set. */
  findPasswordHash(): Promise<string | null>
  /** Counts one more, in a window of 60 s that opens with the first; on the database's clock. */
  countWrongKey(address: string): Promise<WrongKeyCount>
  /** One commit: sets or clears (null) the hash, and ends every session but `keptId`. */
  setPasswordHash(hash: string | null, keptId: string | null): Promise<void>
}

export interface Retention {
  /**
   * Erases one small step of what is older than `before`: messages that are not queued, sent and received, and their events once nothing
   * is owed of them, finished deliveries with their attempts, expired idempotency keys, and what is out of date about numbers.
   * Returns how many rows went; 0 when nothing is left to do.
   */
  step(before: number, now: number): Promise<number>
}
