/** Time as the lanes need it. */
export interface Clock {
  /** The wall clock, milliseconds since 1970: stamps records and signatures. May jump. */
  now(): number
  /**
   * The wall clock as it was when the process started, and the time since: measures, and says when retries are due. Never
   * jumps, so that a clock that is set neither brings all retries at once nor puts them off.
   */
  steady(): number
  /** Runs `task` once, `delayMs` from now on the steady clock. @returns cancels it */
  after(delayMs: number, task: () => void): () => void
}

/** Node fires a timer with a longer delay at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** A delay longer than a timer can hold is cut: whoever waits that long looks again when woken. */
export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.timeOrigin + performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}
