import { LeaseLost, StoreUnavailable } from './errors.ts'

/** How a write ended: `fenced`, its lease had moved on; `unavailable`, the store could not do it; `failed`, a bug or a broken rule. */
export type WriteEnd = 'committed' | 'fenced' | 'unavailable' | 'failed'

/** Is told of every write as it ends, and must be quick: whoever waits for the write waits for it too. */
export interface StoreObserver {
  /** @param operation its name, one of a few dozen; `durationMs` is from the call to the end, the time in the queue included */
  onWrite(operation: string, durationMs: number, end: WriteEnd): void
}

/** Tells `observer` how `write` ends, and changes nothing about it. */
export function observeWrite(observer: StoreObserver, operation: string, write: Promise<unknown>): void {
  const startedAt = performance.now()
  const tell = (end: WriteEnd) => observer.onWrite(operation, performance.now() - startedAt, end)
  write.then(
    () => tell('committed'),
    error => tell(error instanceof LeaseLost ? 'fenced' : error instanceof StoreUnavailable ? 'unavailable' : 'failed'),
  )
}
