/** Work may begin at once for this long. After that one piece begins in each iteration of the event loop. */
const BUDGET_MS = 10

/**
 * Starts work in the order of the requests without blocking the event loop. A connection that requests its next piece
 * only when the last one has ended gets no more than the others.
 */
export class EventLoopBudget {
  readonly #waiting: (() => void)[] = []
  /** Null while no piece has begun in this iteration of the event loop. */
  #iterationBegunAt: number | null = null

  next(): Promise<void> {
    if (this.#waiting.length === 0 && this.#mayBegin()) return Promise.resolve()
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  #mayBegin(): boolean {
    if (this.#iterationBegunAt !== null) return performance.now() - this.#iterationBegunAt < BUDGET_MS
    this.#iterationBegunAt = performance.now()
    setImmediate(() => this.#nextIteration())
    return true
  }

  #nextIteration(): void {
    this.#iterationBegunAt = null
    const begin = this.#waiting.shift()
    if (begin && this.#mayBegin()) begin()
  }
}
