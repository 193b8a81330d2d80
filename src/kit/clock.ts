/** The clocks of a machine, and its timers. */
export interface Clock {
  /** The wall clock, milliseconds since 1970, for records and signatures. May jump. */
  now(): number
  /**
   * Starts with the wall clock's time at the start of the process, then counts the elapsed milliseconds. Never jumps, so
   * setting the wall clock changes no duration and no due time.
   */
  steady(): number
  /** Runs `task` once, after `delayMs` on the steady clock. @returns a function that cancels it */
  after(delayMs: number, task: () => void): () => void
}

/** The accepted difference between the clocks of two nodes. A larger one counts as a clock that was set wrong. */
export const CLOCK_TOLERANCE_MS = 1_000

/** Node runs a timer with a longer delay immediately. */
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
