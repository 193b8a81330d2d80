/** A piece of work takes about a millisecond, so other work is delayed by about this many milliseconds at most. */
const STARTS_PER_TURN = 4

/**
 * Limits how many pieces of work start in one turn of the event loop. Owners take turns, and the work of one owner starts in
 * its order. A backlog is still processed at full speed, and other work runs between the turns.
 */
export class EventLoopBudget {
  readonly #startsPerTurn: number
  /** The work of each owner, the next owner first. */
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(startsPerTurn = STARTS_PER_TURN) {
    this.#startsPerTurn = startsPerTurn
  }

  take(owner = ''): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#waiting.size === 0) setImmediate(this.#startNext)
    const own = this.#waiting.get(owner)
    if (own) own.push(resolve)
    else this.#waiting.set(owner, [resolve])
    return promise
  }

  readonly #startNext = (): void => {
    for (let starts = 0; starts < this.#startsPerTurn; starts++) {
      const [next] = this.#waiting
      if (next === undefined) return
      const [owner, work] = next
      this.#waiting.delete(owner)
      work.shift()?.()
      if (work.length > 0) this.#waiting.set(owner, work)
    }
    if (this.#waiting.size > 0) setImmediate(this.#startNext)
  }
}
