import { type Clock, systemClock } from './clock.ts'

/** How long the foreground keeps its priority after its last work has ended, because the caller goes on with the result. */
const AFTERWARDS_MS = 2
/** The longest time that other work yields without a break. */
const LONGEST_MS = 20
/** The credit that a quiet millisecond adds, in milliseconds. Other work yields at most a fifth of the time. */
const CREDIT_PER_MS = 0.25

/**
 * Work that somebody waits for. Other work yields to it only as long as there is credit, so that other work continues
 * under any load. Each busy millisecond costs 1 ms of credit, and each quiet one adds 0.25 ms, up to 20 ms.
 */
export class Foreground {
  readonly #clock: Pick<Clock, 'steady'>
  #running = 0
  #busyUntil = Number.NEGATIVE_INFINITY
  #creditMs = LONGEST_MS
  #countedAt: number

  constructor(clock: Pick<Clock, 'steady'> = systemClock) {
    this.#clock = clock
    this.#countedAt = clock.steady()
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
    const now = this.#clock.steady()
    const elapsedMs = now - this.#countedAt
    const busyMs = this.#running > 0 ? elapsedMs : Math.min(elapsedMs, Math.max(0, this.#busyUntil - this.#countedAt))
    const creditMs = this.#creditMs - busyMs + (elapsedMs - busyMs) * CREDIT_PER_MS
    this.#creditMs = Math.min(LONGEST_MS, Math.max(0, creditMs))
    this.#countedAt = now
    return now
  }
}
