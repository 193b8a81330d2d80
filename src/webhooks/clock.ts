/** The clock of the lanes and the resolver. */
export interface Clock {
  /** The wall clock, milliseconds since 1970, for records and signatures. May jump. */
  now(): number
  /**
   * Milliseconds since 1970 by the wall clock at the start of the process plus the time since. Never jumps: durations and due
   * times do not change when the wall clock is set.
   */
  steady(): number
  /** Runs `task` once, after `delayMs` on the steady clock. @returns a function that cancels it */
  after(delayMs: number, task: () => void): () => void
}

/** Node runs a timer with a longer delay at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Delays longer than a Node timer allows are shortened; the task must then check the time itself. */
export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.timeOrigin + performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}
