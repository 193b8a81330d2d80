import type { AfterAttempt, DeliveryState } from '../../domain/delivery.ts'
import type { EventKind } from '../../domain/event.ts'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

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
