/** To encrypt a message takes about a millisecond: so long at most callers and timers have to wait for senders. */
const PER_TURN = 4

/**
 * Shared by all connections of a node: so many sends begin in one turn of the event loop, first come, first served. A
 * backlog is sent as fast as before, but what comes in meanwhile is answered between.
 */
export class Turns {
  #waiting: (() => void)[] = []
  #scheduled = false

  take(): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.push(resolve)
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      for (const go of this.#waiting.splice(0, PER_TURN)) go()
      if (this.#waiting.length > 0) this.#schedule()
    })
  }
}
