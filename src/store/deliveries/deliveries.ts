import type { AfterAttempt, DeliveryState, Redeliverable } from '../../domain/delivery.ts'
import type { EventKind } from '../../domain/event.ts'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

export interface DeliverySummary {
  id: string
  url: string
  state: DeliveryState
  attempts: number
  /** When the next attempt is due; null if none is scheduled. */
  nextAttemptAt: number | null
  /** Requested by a person; not part of the order of events. */
  redelivery: boolean
}

export interface AttemptRecord {
  attemptNumber: number
  url: string
  startedAt: number
  durationMs: number
  /** Null if no status line was received. */
  status: number | null
  /** A stable code such as `timeout` or `blocked_address`; null if a status line was received. */
  error: string | null
  /** The beginning of the response body, at most 1 KiB. */
  responseExcerpt: string | null
}

/** A delivery whose next attempt may start, with everything that the attempt needs except the secret. */
export interface DueDelivery {
  /** Increases in the order of the events. */
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
  /** For a retry: when the previous attempt failed, by the clock of `dueAt`. Null if unknown. */
  failedAt: number | null
}

export type RedeliverOutcome = 'queued' | 'no_event' | 'no_webhook' | 'still_pending'

export interface Deliveries {
  /** Unblocked deliveries without an attempt whose `seq` is above `afterSeq`, in the order of the events. */
  listFirst(instanceId: InstanceId, afterSeq: number, limit: number): Promise<DueDelivery[]>
  /** Retries that are due at or before `dueBefore`, earliest first, above (`after.dueAt`, `after.seq`). */
  listRetries(
    instanceId: InstanceId,
    after: { dueAt: number; seq: number },
    dueBefore: number,
    limit: number,
  ): Promise<DueDelivery[]>
  /**
   * Records an attempt and its consequence in one commit: a retry, or the end of the delivery (`delivered` or `exhausted`),
   * which unblocks its successor. Does nothing if this attempt was already recorded.
   */
  recordAttempt(lease: Lease, delivery: DueDelivery, attempt: AttemptRecord, then: AfterAttempt): Promise<void>
  /** Creates a new delivery of the same bytes to the current URL, outside the order of events, with its own attempts. */
  redeliver(instanceId: InstanceId, eventId: EventId, now: number): Promise<RedeliverOutcome>
  /** Redelivers every event created since `since` whose latest delivery is in `state` (`not_posted`: that has none), in several commits. */
  redeliverSince(
    instanceId: InstanceId,
    since: number,
    state: Redeliverable,
    now: number,
  ): Promise<{ kind: 'queued'; count: number } | { kind: 'no_webhook' }>
}
