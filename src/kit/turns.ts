/** Lets a limited number of tasks run at once. The others wait in their order. */
export class Turns {
  readonly #atOnce: number
  #running = 0
  readonly #waiting = new Set<() => void>()

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Resolves with true when the task may run: then call `end` after it. False if `signal` is aborted first. */
  async take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false
    if (this.#running < this.#atOnce) {
      this.#running += 1
      return true
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const start = () => resolve(true)
    const giveUp = () => resolve(!this.#waiting.delete(start))
    this.#waiting.add(start)
    signal.addEventListener('abort', giveUp, { once: true })
    const mayRun = await promise
    signal.removeEventListener('abort', giveUp)
    return mayRun
  }

  /** Hands the turn over to the task that has waited longest. */
  end(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#running -= 1
    else this.#waiting.delete(next)
    next?.()
  }
}
