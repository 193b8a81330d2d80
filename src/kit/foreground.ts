/** How long the foreground keeps its priority after its last work has ended, because the caller goes on with the result. */
const AFTERWARDS_MS = 2
/** The longest time that other work yields at once. */
const LONGEST_MS = 20
/** The credit that a quiet millisecond adds, in milliseconds. So other work yields for a fifth of the time at most. */
const CREDIT_PER_MS = 0.25

/**
 * Work that somebody waits for. Work that can wait yields to it, but only as long as there is credit, so that it goes on under
 * any load: each busy millisecond costs one, and each quiet millisecond adds a quarter, up to 20.
 */
export class Foreground {
  readonly #now: () => number
  #running = 0
  #busyUntil = Number.NEGATIVE_INFINITY
  #creditMs = LONGEST_MS
  #countedAt: number

  /** @param now a clock that does not jump, in milliseconds */
  constructor(now = () => performance.now()) {
    this.#now = now
    this.#countedAt = now()
  }

  /** Whether work that can wait should start a little later. */
  get hasPriority(): boolean {
    const now = this.#count()
    return this.#creditMs > 0 && (this.#running > 0 || now < this.#busyUntil)
  }

  begin(): void {
    this.#count()
    this.#running += 1
  }

  end(): void {
    this.#busyUntil = this.#count() + AFTERWARDS_MS
    this.#running -= 1
  }

  /** Settles the credit for the time since it was last counted. @returns the current time */
  #count(): number {
    const now = this.#now()
    const elapsedMs = now - this.#countedAt
    const busyMs = this.#running > 0 ? elapsedMs : Math.min(elapsedMs, Math.max(0, this.#busyUntil - this.#countedAt))
    const creditMs = this.#creditMs - busyMs + (elapsedMs - busyMs) * CREDIT_PER_MS
    this.#creditMs = Math.min(LONGEST_MS, Math.max(0, creditMs))
    this.#countedAt = now
    return now
  }
}
