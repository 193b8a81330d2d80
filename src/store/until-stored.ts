import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../kit/backoff.ts'
import { StoreUnavailable } from './errors.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/**
 * Repeats `work` while the store is unavailable, for `limitMs` at most. `work` must be idempotent, because the outcome
 * of a failed write is unknown.
 * @throws the error of `work` if it is not `StoreUnavailable`, or once `limitMs` is over or `signal` is aborted
 */
export async function untilStored<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  limitMs = Number.POSITIVE_INFINITY,
): Promise<T> {
  const startedAt = performance.now()
  for (let failures = 0; ; failures += 1) {
    try {
      return await work()
    } catch (error) {
      const late = performance.now() - startedAt >= limitMs
      if (!(error instanceof StoreUnavailable) || signal.aborted || late) throw error
      await sleep(backoffMs(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), undefined, { signal }).catch(() => {
        throw error
      })
    }
  }
}
