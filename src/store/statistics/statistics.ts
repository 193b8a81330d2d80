import type { ConnectionCause, ConnectionState } from '../../domain/connection/connection.ts'
import type { RecentDeliveries } from '../../domain/events/delivery.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import type { Instance } from '../../domain/instance.ts'
import type { ReceivingFailure } from '../../domain/media.ts'
import type { FailureCode } from '../../domain/message.ts'

export interface InstanceActivity {
  instanceId: InstanceId
  /** Messages accepted since the requested time: those that WhatsApp has, those that failed, and those still queued. */
  sent: number
  failed: number
  queued: number
  /** Messages received since then. */
  received: number
  /** When the oldest event with an unfinished delivery was created; null if there is none. */
  oldestUndeliveredAt: number | null
  /** Counts go up to `MAX_RECENT`. */
  deliveries: RecentDeliveries
}

/** The limit for counts of deliveries in a list of instances. */
export const MAX_RECENT = 1_000

/** At most this many finished deliveries of an instance are read to find those of each endpoint. */
export const MAX_LOOKED_AT = 2_000

export interface EndpointDeliveries {
  endpointId: EndpointId
  /** Up to `MAX_RECENT`. */
  recent: RecentDeliveries
  /** Unfinished deliveries, including those that are retried or blocked; up to `MAX_RECENT`. */
  waiting: number
  /** The newest failed attempt of a delivery that is being retried or, if there is none, of one that was given up. */
  lastFailure: { at: number; status: number | null; error: string | null } | null
}

export interface MessageCounts {
  /** Messages that WhatsApp has. */
  sent: number
  failed: number
  queued: number
  received: number
}

export interface Latencies {
  count: number
  /** The longest one; 0 if there is none. */
  longestMs: number
}

/** The outcomes of the events that were created in a period. */
export interface DeliveryOutcomes {
  /** Delivered by the first attempt. */
  first: number
  /** Delivered by a later attempt. */
  retried: number
  redelivered: number
  exhausted: number
  /** Pending or blocked. */
  waiting: number
  /** Events that the default filter includes, but that have no delivery, for example because no URL was set. */
  notPosted: number
  /**
   * Events delivered without a redelivery, by the time from the event to the end of the successful attempt. Entry `i` has
   * those above bound `i - 1` and at most `LATENCY_BOUNDS_MS[i]`; the last entry has those above every bound.
   */
  latencies: Latencies[]
}

/** Upper bounds in milliseconds. They follow the retry schedule. */
export const LATENCY_BOUNDS_MS = [
  10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 150_000, 300_000, 800_000,
] as const

/** The limit for counts of one instance. */
export const MAX_COUNTED = 10_000

/** An instance that needs attention. */
export interface InstanceTrouble {
  instance: Instance
  cause: ConnectionCause | null
  /** When the stored state began. */
  since: number
  /** Null without a restriction in force. */
  restrictedUntil: number | null
  /** Some of the newest `MAX_LOOKED_AT` exhausted events were not delivered later. Ignores deleted endpoints. */
  hasGivenUp: boolean
  isRetrying: boolean
}

export const MAX_TROUBLES = 1_000

/** The limit for counts of the whole store. */
export const MAX_TOTAL = 100_000

/** Totals of the whole store, the same on every node. Ages are milliseconds by the store's own clock. */
export interface StoreTotals {
  /** Queued messages, except scheduled ones and commands, up to `MAX_TOTAL`. */
  queued: number
  /** Age of the oldest of these messages; 0 if there is none. */
  oldestQueuedMs: number
  /** Unfinished deliveries by readiness, each up to `MAX_TOTAL`. */
  deliveries: { first: number; retry: number; blocked: number }
  /** How long the most overdue delivery has been due; 0 if none is due. Ignores inactive endpoints. */
  oldestDueMs: number
  connections: Record<ConnectionState, number>
  /** Instances that no node runs. */
  unowned: number
  bytes: number
  /** Files, of all instances. */
  media: {
    /** Bytes in the storage, including those that are being written or removed. */
    bytes: number
    /** Received files that are still to be fetched, up to `MAX_TOTAL`. */
    pending: number
    /** Files that are still to be fetched from URLs, up to `MAX_TOTAL`. */
    fromUrls: number
    /** Received files that could not be fetched and whose rows still exist, by reason, each up to `MAX_TOTAL`. */
    failed: Record<ReceivingFailure, number>
  }
}

export interface Statistics {
  /**
   * The instances whose number is down or restricted, whose events are being retried, or that have exhausted events
   * created since `givenUpSince`. In the order of their creation, up to `MAX_TROUBLES`. Costs a few index searches per
   * instance.
   * @param reached at most 1,000 instances. Default: all of them
   */
  troubles(givenUpSince: number, reached?: readonly InstanceId[] | null): Promise<InstanceTrouble[]>
  /** Costs a few index searches per instance, and counts up to `MAX_TOTAL`. */
  totals(): Promise<StoreTotals>
  /**
   * Counts messages since `since` and exhausted deliveries of events since `givenUpSince`. The result is in no
   * particular order. Unknown instances are returned as idle.
   */
  activity(ids: readonly InstanceId[], since: number, givenUpSince: number): Promise<InstanceActivity[]>
  /**
   * The deliveries of each endpoint. The last success and the last exhausted delivery are found if they are among the newest
   * `MAX_LOOKED_AT` of the instance.
   */
  endpoints(
    instanceId: InstanceId,
    endpointIds: readonly EndpointId[],
    givenUpSince: number,
  ): Promise<EndpointDeliveries[]>
  /** The messages accepted and received in a period, except queued ones. */
  messages(instanceId: InstanceId, since: number, until: number): Promise<Omit<MessageCounts, 'queued'>>
  /**
   * The queued messages that were accepted in each of the periods between neighbouring bounds. Reads the whole queue, in slices.
   * @param bounds moments, the earliest first
   */
  queued(instanceId: InstanceId, bounds: readonly number[]): Promise<number[]>
  /** Counts the newest `MAX_COUNTED` failed messages accepted since `since` by reason, the most frequent first. */
  failures(instanceId: InstanceId, since: number): Promise<{ code: FailureCode; count: number }[]>
  outcomes(instanceId: InstanceId, since: number, until: number): Promise<DeliveryOutcomes>
  /** The number of events created since `since` that `redeliverSince` would queue, up to `MAX_COUNTED`. */
  countEnded(instanceId: InstanceId, since: number, state: 'delivered' | 'exhausted'): Promise<number>
  /** The same for `not_posted`. Reads all events since then. */
  countNotPosted(instanceId: InstanceId, since: number): Promise<number>
  /** The number of events with an unfinished redelivery, up to `MAX_COUNTED`. */
  countRedelivering(instanceId: InstanceId): Promise<number>
}
