import type { MessageStep } from '../domain/message.ts'
import { LeaseLost, StoreUnavailable } from './errors.ts'

/** How a write ended. `fenced`: its lease was lost; `unavailable`: `StoreUnavailable`; `failed`: a bug or a violated constraint. */
export type WriteEnd = 'committed' | 'fenced' | 'unavailable' | 'failed'

/** Called at the end of every write. It must be quick, because the caller of the write waits for it. */
export interface StoreObserver {
  /** @param operation one of a few dozen names; `durationMs` includes the time in the queue */
  onWrite(operation: string, durationMs: number, end: WriteEnd): void
  onMessageStep(step: MessageStep): void
}

/** The end of a write that failed with `error`. */
export function endOf(error: unknown): WriteEnd {
  if (error instanceof LeaseLost) return 'fenced'
  return error instanceof StoreUnavailable ? 'unavailable' : 'failed'
}
