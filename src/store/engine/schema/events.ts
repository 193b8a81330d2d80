import type { Generated } from 'kysely'
import type { EventKind } from '../../../domain/event.ts'

export interface EventsTable {
  instance_id: string
  id: string
  kind: EventKind
  /** The timestamp in the body. */
  timestamp: number
  created_at: number
  /** The message sent or received; null for one received before `incoming_messages` was there. */
  message_id: string | null
  /** SHA-256 of the first key of an incoming message; null for the others. */
  incoming_digest: Uint8Array | null
  /** The text whose UTF-8 bytes are posted. */
  body: string
}

/** A delivery that is not finished is one of: never tried and free to go, failed before and due again, or waiting for another. */
export type Readiness = 'first' | 'retry' | 'blocked'

/** Only what is not finished: at most one per event. */
export interface DeliveriesTable {
  seq: Generated<number>
  instance_id: string
  event_id: string
  /** Null for what stands outside the order: incoming messages and redeliveries. */
  message_id: string | null
  url: string
  readiness: Readiness
  /** The event whose delivery this one waits for; set while blocked. */
  blocked_by: string | null
  attempts: number
  due_at: number
  /** Of a retry: when the attempt before it failed, on the clock of `due_at`. Null where an older version wrote it. */
  failed_at: number | null
  redelivery: number
}

export interface FinishedDeliveriesTable {
  seq: number
  instance_id: string
  event_id: string
  url: string
  state: 'delivered' | 'exhausted'
  attempts: number
  redelivery: number
  /** 1: the event was delivered again since. */
  superseded: number
}

export interface AttemptsTable {
  instance_id: string
  delivery_seq: number
  attempt_number: number
  event_id: string
  url: string
  started_at: number
  duration_ms: number
  status: number | null
  error: string | null
  response_excerpt: string | null
}
