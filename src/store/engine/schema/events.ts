import { type Generated, sql } from 'kysely'
import { DEFAULT_EVENTS, OPERATOR_PREFIX } from '../../../domain/events/endpoint.ts'
import type { EventKind } from '../../../domain/events/event.ts'
import type { EndpointId } from '../../../domain/ids.ts'

export interface EventsTable {
  instance_id: string
  id: string
  kind: EventKind
  /** The timestamp in the body. */
  timestamp: number
  created_at: number
  /**
   * The message that the event is about. Null if the event is about a connection or a group, or if the message was
   * received before the table `incoming_messages` existed.
   */
  message_id: string | null
  /** SHA-256 of an incoming message's first key (`incomingKeys`), which prevents recording it twice. Null for other events. */
  incoming_digest: Uint8Array | null
  /**
   * Numbers the instance's events in the order of their commits, with gaps. Assigned by `EventRecorder`. Null only on
   * PostgreSQL, for an event older than the numbers.
   */
  seq: number | null
  /** The text whose UTF-8 bytes are posted. */
  body: string
  /** The trace context of its message. */
  traceparent: Generated<string | null>
}

/**
 * Whether the default endpoint receives this kind until its filter is changed. Other kinds are posted only to
 * subscribers, so a missing delivery is not a failure.
 */
export const IS_POSTED_BY_DEFAULT = sql<boolean>`events.kind in (${sql.join(DEFAULT_EVENTS.map(kind => sql.lit(kind)))})`

/** The facts about an instance's erased events that the feed needs. */
export interface EventFeedsTable {
  instance_id: string
  /** The highest `seq` of an erased event. */
  erased_to: number
}

/** The state of an unfinished delivery: `first` has no attempt yet, `retry` failed before, `blocked` waits for another delivery. */
export type Readiness = 'first' | 'retry' | 'blocked'

/** Deliveries to the instance's own endpoints. @param alias of the table of unfinished deliveries */
export function isToOwn(alias: string) {
  return sql<boolean>`${sql.ref(`${alias}.endpoint_id`)} < ${sql.lit(OPERATOR_PREFIX)}`
}

/**
 * The endpoint of a finished delivery, found by its key, because the index by state, which these queries must use, does
 * not contain the endpoint.
 */
export function endpointOf(alias: string) {
  const of = (column: string) => sql.ref(`${alias}.${column}`)
  return sql<EndpointId>`(select o.endpoint_id from finished_deliveries as o where o.instance_id = ${of('instance_id')}
    and o.event_id = ${of('event_id')} and o.seq = ${of('seq')})`
}

/** The same as `isToOwn` for finished deliveries. */
export function endedAtOwn(alias: string) {
  return sql<boolean>`${endpointOf(alias)} < ${sql.lit(OPERATOR_PREFIX)}`
}

/** Deliveries to operator endpoints. They have indexes of their own, which need this condition. */
export function isToOperator(alias: string) {
  return sql<boolean>`${sql.ref(`${alias}.endpoint_id`)} >= ${sql.lit(OPERATOR_PREFIX)}`
}

/** Unfinished deliveries, at most one per event and endpoint. */
export interface DeliveriesTable {
  seq: Generated<number>
  instance_id: string
  event_id: string
  endpoint_id: Generated<EndpointId>
  /**
   * The message whose deliveries keep their order. Null for other events, incoming messages without a file, and
   * redeliveries.
   */
  message_id: string | null
  url: string
  readiness: Readiness
  /** The event whose delivery this one waits for; set while blocked. */
  blocked_by: string | null
  attempts: number
  due_at: number
  /** For a retry: when the previous attempt failed, by the clock of `due_at`. Null if an older version wrote the row. */
  failed_at: number | null
  /** When an immediate attempt was last requested. */
  requested_at: number | null
  /** While the request is pending: when the schedule's attempt is due. `due_at` is then the time of the request. */
  scheduled_at: number | null
  redelivery: number
}

export interface FinishedDeliveriesTable {
  seq: number
  instance_id: string
  event_id: string
  endpoint_id: Generated<EndpointId>
  url: string
  state: 'delivered' | 'exhausted'
  attempts: number
  redelivery: number
  /** 1 if the event has a later delivery to this endpoint. */
  superseded: number
}

export interface AttemptsTable {
  instance_id: string
  delivery_seq: number
  /** A requested attempt that failed has a negative number, because the schedule's attempt has the positive one. */
  attempt_number: number
  /** For a requested attempt: the number that it was posted with. */
  requested_number: number | null
  event_id: string
  url: string
  started_at: number
  duration_ms: number
  status: number | null
  error: string | null
  response_excerpt: string | null
}
