import { LeaseLost, StoreUnavailable } from './errors.ts'

/** How a write ended. `fenced`: its lease was lost; `unavailable`: `StoreUnavailable`; `failed`: a bug or a violated constraint. */
export type WriteEnd = 'committed' | 'fenced' | 'unavailable' | 'failed'

/** Called at the end of every write. It must be quick, because the caller of the write waits for it. */
export interface StoreObserver {
  /** @param operation one of a few dozen names; `durationMs` includes the time in the queue */
  onWrite(operation: string, durationMs: number, end: WriteEnd): void
}

/** Reports the end of `write` to `observer`. Does not affect `write`. */
export function observeWrite(observer: StoreObserver, operation: string, write: Promise<unknown>): void {
  const startedAt = performance.now()
  const report = (end: WriteEnd) => observer.onWrite(operation, performance.now() - startedAt, end)
  write.then(
    () => report('committed'),
    error =>
      report(error instanceof LeaseLost ? 'fenced' : error instanceof StoreUnavailable ? 'unavailable' : 'failed'),
  )
}
