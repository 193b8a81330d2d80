/** So long pieces begin at once; then the event loop goes round, and those that wait begin one in each round. */
const ROUND_MS = 10

/**
 * Lets work begin in the order in which it was asked for, without holding up the event loop. A connection that asks again only
 * when its piece is done gets no more than any other.
 */
export class Turns {
  readonly #waiting: (() => void)[] = []
  /** Null while no piece has begun since the event loop last went round. */
  #roundBegunAt: number | null = null

  next(): Promise<void> {
    if (this.#waiting.length === 0 && this.#mayBegin()) return Promise.resolve()
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  #mayBegin(): boolean {
    if (this.#roundBegunAt !== null) return performance.now() - this.#roundBegunAt < ROUND_MS
    this.#roundBegunAt = performance.now()
    setImmediate(() => this.#goRound())
    return true
  }

  #goRound(): void {
    this.#roundBegunAt = null
    const begin = this.#waiting.shift()
    if (begin && this.#mayBegin()) begin()
  }
}
