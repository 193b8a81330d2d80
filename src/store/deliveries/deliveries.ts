import type { AfterAttempt, DeliveryState, Redeliverable } from '../../domain/events/delivery.ts'
import type { Reach } from '../../domain/events/endpoint.ts'
import type { EventKind } from '../../domain/events/event.ts'
import type { EndpointId, EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { Traceparent } from '../../domain/trace-context.ts'
import type { Lease } from '../leases/leases.ts'

export interface DeliverySummary {
  id: string
  endpointId: EndpointId
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
  /** Requested by a person, ahead of the schedule. */
  requested: boolean
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

/** A delivery that no other one blocks. It contains everything that the next attempt needs, except the secret. */
export interface DueDelivery {
  /** Increases in the order of the events. */
  seq: number
  instanceId: InstanceId
  eventId: EventId
  endpointId: EndpointId
  /** The message that the event is about; null if there is none. */
  messageId: MessageId | null
  kind: EventKind
  url: string
  body: Uint8Array
  /** The trace context of the call that created the message; null if there is none. */
  traceparent: Traceparent | null
  /** The attempt to make, from 1. */
  attemptNumber: number
  dueAt: number
  /** For a retry: when the previous attempt failed, by the clock of `dueAt`. Null if unknown. */
  failedAt: number | null
  /**
   * Set if a person requested this attempt ahead of the schedule, with the time of the request. If the attempt fails,
   * the scheduled attempt with the same number is made at `scheduledAt`.
   */
  requested: { at: number; scheduledAt: number } | null
}

export type RedeliverOutcome = 'queued' | 'no_event' | 'no_webhook' | 'no_endpoint' | 'still_pending' | 'too_many'

export type RetryOutcome =
  | { kind: 'requested' }
  | { kind: 'no_delivery' }
  | { kind: 'not_waiting' }
  | { kind: 'too_soon'; afterMs: number }

export interface Deliveries {
  /** Unblocked deliveries without an attempt whose `seq` is above `afterSeq`, in the order of the events. */
  listFirst(
    instanceId: InstanceId,
    afterSeq: number,
    limit: number,
    /** Default: the instance's default endpoint. */
    endpointId?: EndpointId,
  ): Promise<DueDelivery[]>
  /** The first `limit` retries, in the order of their due times. */
  listRetries(instanceId: InstanceId, limit: number, endpointId?: EndpointId): Promise<DueDelivery[]>
  /**
   * Records an attempt and its consequence in one commit: a retry, or the end of the delivery (`delivered` or `exhausted`),
   * which unblocks its successor. Does nothing if this attempt was already recorded.
   */
  recordAttempt(lease: Lease, delivery: DueDelivery, attempt: AttemptRecord, then: AfterAttempt): Promise<void>
  /**
   * Creates a new delivery of the same bytes to the current URL, outside the order of events, with its own attempts.
   * @param endpointId default: every endpoint that receives events of this kind. Endpoints with an unfinished delivery
   * of the event are skipped, and those that have `MAX_DELIVERIES_OF_EVENT`
   */
  redeliver(
    instanceId: InstanceId,
    eventId: EventId,
    now: number,
    endpointId?: EndpointId | undefined,
    /** Default: `own`. */
    reach?: Reach,
  ): Promise<RedeliverOutcome>
  /**
   * Redelivers every event created since `since` to each endpoint where its latest delivery is in `state`, in several commits.
   * `not_posted`: events without a delivery, to each endpoint that receives their kind.
   * @returns the number of events, or `no_webhook` if the instance has no endpoint of its own and no operator endpoint takes any
   *   of the events
   */
  redeliverSince(
    instanceId: InstanceId,
    since: number,
    state: Redeliverable,
    now: number,
  ): Promise<{ kind: 'queued'; count: number } | { kind: 'no_webhook' }>
  /**
   * Makes the next attempt due now. If it fails, the scheduled attempt is still made at its time.
   * @param now on the steady clock, like the due times of retries
   * @param reach default: `own`
   */
  retryNow(instanceId: InstanceId, eventId: EventId, seq: number, now: number, reach?: Reach): Promise<RetryOutcome>
  /**
   * The same for every delivery of the endpoint that waits for a retry, in the order of the events and in several
   * commits.
   * @returns how many attempts were made due
   */
  retryAllNow(instanceId: InstanceId, endpointId: EndpointId, now: number): Promise<number>
}
