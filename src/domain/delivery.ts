export const DELIVERY_STATES = ['pending', 'blocked', 'delivered', 'exhausted'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** Milliseconds between the end of a failed attempt and the start of the next (the contract's schedule). */
export const RETRY_DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 600_000] as const

/** Every branch must be finished by whoever records an attempt. */
export type AfterAttempt =
  | { kind: 'delivered' }
  | { kind: 'retry'; dueAt: number; failedAt: number }
  | { kind: 'exhausted' }

/**
 * @param attemptNumber the attempt that ended, from 1
 * @param endedAt its end, milliseconds since 1970
 */
export function afterAttempt(
  succeeded: boolean,
  attemptNumber: number,
  endedAt: number,
  retryDelaysMs: readonly number[],
): AfterAttempt {
  if (succeeded) return { kind: 'delivered' }
  const delayMs = retryDelaysMs[attemptNumber - 1]
  return delayMs === undefined ? { kind: 'exhausted' } : { kind: 'retry', dueAt: endedAt + delayMs, failedAt: endedAt }
}

/**
 * How an instance's webhook takes its events: `idle`, none has ended; `working`; `retrying`, some failed and are tried
 * again; `failing`, what ended last was given up; `missed`, it works, and some were given up before and not delivered since.
 */
export const DELIVERY_HEALTHS = ['idle', 'working', 'retrying', 'failing', 'missed'] as const
export type DeliveryHealth = (typeof DELIVERY_HEALTHS)[number]

export interface RecentDeliveries {
  /** Events that failed and are tried again. */
  retrying: number
  /** Events of the last days that were given up and not delivered since. */
  givenUp: number
  /** The end of the last attempt of the newest event that was delivered, and of the newest that was given up. */
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
