export const DELIVERY_STATES = ['pending', 'blocked', 'delivered', 'exhausted'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** Milliseconds between the end of a failed attempt and the start of the next (the contract's schedule). */
export const RETRY_DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 600_000] as const

/** Every branch must be finished by whoever records an attempt. */
export type AfterAttempt = { kind: 'delivered' } | { kind: 'retry'; dueAt: number } | { kind: 'exhausted' }

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
  return delayMs === undefined ? { kind: 'exhausted' } : { kind: 'retry', dueAt: endedAt + delayMs }
}
