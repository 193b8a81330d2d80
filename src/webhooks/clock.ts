/** Time as the lanes need it: the wall clock stamps rows and signatures, the monotonic one measures and waits. */
export interface Clock {
  /** Milliseconds since 1970; may jump. */
  now(): number
  /** Milliseconds since some start; never jumps. */
  monotonic(): number
  /** Runs `task` once, `delayMs` from now on the monotonic clock. @returns cancels it */
  after(delayMs: number, task: () => void): () => void
}

/** Node fires a timer with a longer delay at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** A delay longer than a timer can hold is cut: whoever waits that long looks again when woken. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, Math.min(delayMs, LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}
