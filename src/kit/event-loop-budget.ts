/** For work that takes about a millisecond each: other work is delayed by at most about this many milliseconds. */
const STARTS_PER_TURN = 4

/**
 * Limits how many pieces of work start in one turn of the event loop, first come, first served. A backlog is worked off no
 * slower, and everything else runs between the turns.
 */
export class EventLoopBudget {
  readonly #startsPerTurn: number
  #waiting: (() => void)[] = []

  constructor(startsPerTurn = STARTS_PER_TURN) {
    this.#startsPerTurn = startsPerTurn
  }

  take(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#waiting.push(resolve) === 1) setImmediate(this.#startNext)
    return promise
  }

  readonly #startNext = (): void => {
    for (const start of this.#waiting.splice(0, this.#startsPerTurn)) start()
    if (this.#waiting.length > 0) setImmediate(this.#startNext)
  }
}
