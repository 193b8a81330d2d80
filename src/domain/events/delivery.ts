export const DELIVERY_STATES = ['pending', 'blocked', 'delivered', 'exhausted'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/**
 * The filters of an event list: a state, or a narrower condition. `retrying`: pending, after a failed attempt. `not_posted`: no
 * endpoint received the event when it was created, and it was not redelivered.
 */
export const DELIVERY_FILTERS = [...DELIVERY_STATES, 'retrying', 'not_posted'] as const
export type DeliveryFilter = (typeof DELIVERY_FILTERS)[number]

/** With this many finished deliveries of one event to one endpoint, a request to redeliver this single event skips the endpoint. */
export const MAX_DELIVERIES_OF_EVENT = 100

/** The events that a redelivery of many can select. */
export const REDELIVERABLE = ['delivered', 'exhausted', 'not_posted'] as const
export type Redeliverable = (typeof REDELIVERABLE)[number]

/** Milliseconds between the end of a failed attempt and the start of the next (the default of contract §5), for all endpoints. */
export const RETRY_DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 600_000] as const

/** The bounds of a retry schedule. A timer of Node waits at most `MAX_RETRY_DELAY_MS`. */
export const MAX_RETRIES = 20
export const MAX_RETRY_DELAY_MS = 2 ** 31 - 1

/** The consequence of an attempt. The caller handles every kind. */
export type AfterAttempt =
  | { kind: 'delivered' }
  | { kind: 'retry'; dueAt: number; failedAt: number }
  | { kind: 'exhausted' }

/**
 * @param attemptNumber the attempt that failed, from 1
 * @param failedAt its end, by the clock that `dueAt` is to follow
 */
export function afterFailedAttempt(
  attemptNumber: number,
  failedAt: number,
  retryDelaysMs: readonly number[],
): AfterAttempt {
  const delayMs = retryDelaysMs[attemptNumber - 1]
  return delayMs === undefined ? { kind: 'exhausted' } : { kind: 'retry', dueAt: failedAt + delayMs, failedAt }
}

/**
 * The health of an instance's webhook. `idle`: no delivery has ended. `retrying`: some deliveries are being retried.
 * `failing`: the last delivery that ended is exhausted. `missed`: it works, but earlier exhausted events are undelivered.
 */
export const DELIVERY_HEALTHS = ['idle', 'working', 'retrying', 'failing', 'missed'] as const
export type DeliveryHealth = (typeof DELIVERY_HEALTHS)[number]

export interface RecentDeliveries {
  retrying: number
  /** Recent events that are exhausted and were not delivered later. Ignores deleted endpoints. */
  givenUp: number
  /** The end of the last attempt of the newest delivered event, and of the newest exhausted one. */
  lastDeliveredAt: number | null
  lastGivenUpAt: number | null
}

export function deliveryHealth(recent: RecentDeliveries): DeliveryHealth {
  const { retrying, givenUp, lastDeliveredAt, lastGivenUpAt } = recent
  if (lastGivenUpAt !== null && lastGivenUpAt >= (lastDeliveredAt ?? 0)) return 'failing'
  if (retrying > 0) return 'retrying'
  if (givenUp > 0) return 'missed'
  return lastDeliveredAt === null ? 'idle' : 'working'
}
