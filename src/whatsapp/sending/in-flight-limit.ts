export interface InFlightLimitOptions {
  /** The maximum number of fast sends in flight. */
  maxFast: number
  /** The maximum number of sends in flight, fast or slow. */
  maxTotal: number
  /** A send that is in flight for longer counts as slow. */
  slowAfterMs: number
  /** A send became slow, so another one may start. */
  onSlow(): void
}

/** Limits the concurrent sends. A send that takes long no longer counts against the limit of fast ones. */
export class InFlightLimit {
  readonly #options: InFlightLimitOptions
  #fast = 0
  #total = 0

  constructor(options: InFlightLimitOptions) {
    this.#options = options
  }

  get hasCapacity(): boolean {
    return this.#fast < this.#options.maxFast && this.#total < this.#options.maxTotal
  }

  /** @returns a function that ends the send; to be called exactly once */
  take(): () => void {
    this.#fast += 1
    this.#total += 1
    let timer: NodeJS.Timeout | undefined = setTimeout(() => {
      timer = undefined
      this.#fast -= 1
      this.#options.onSlow()
    }, this.#options.slowAfterMs)
    return () => {
      this.#total -= 1
      if (timer === undefined) return
      clearTimeout(timer)
      this.#fast -= 1
    }
  }
}
