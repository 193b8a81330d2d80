import { monotonicMs } from './clock.ts'

/**
 * Calls `begin` at fixed times, however long the work that it begins takes. Resolves after the last call.
 * @param begin gets the number of the call, from 0, and its scheduled moment on the monotonic clock
 */
export function runPaced(
  perSecond: number,
  count: number,
  begin: (index: number, scheduledAtMs: number) => void,
): Promise<void> {
  const startedAt = monotonicMs()
  const momentOf = (index: number) => startedAt + (index * 1_000) / perSecond
  let index = 0
  return new Promise(resolve => {
    function beginDue(): void {
      const now = monotonicMs()
      for (; index < count && momentOf(index) <= now; index += 1) begin(index, momentOf(index))
      if (index === count) resolve()
      else setTimeout(beginDue, Math.max(1, momentOf(index) - now))
    }
    beginDue()
  })
}
