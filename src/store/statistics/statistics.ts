import type { ConnectionState } from '../../domain/connection.ts'
import type { RecentDeliveries } from '../../domain/delivery.ts'
import type { InstanceId } from '../../domain/ids.ts'

export interface InstanceActivity {
  instanceId: InstanceId
  /** Messages accepted, and messages received, since the moment asked for. */
  sent: number
  received: number
  /** When the oldest event was made whose delivery has not ended; null when nothing is pending. */
  oldestUndeliveredAt: number | null
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
