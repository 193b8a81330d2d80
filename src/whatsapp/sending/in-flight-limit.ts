export interface InFlightLimitOptions {
  /** How many may be in flight and fast at the same time. */
  maxFast: number
  /** How many may be in flight at the same time, fast or slow. */
  maxTotal: number
  /** One that is in flight for longer counts as slow, in milliseconds. */
  slowAfterMs: number
  /** One of them became slow, so another one may start. */
  onSlow(): void
}

/** Limits concurrency. One that takes long stops counting against the limit of fast ones. */
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

  /** @returns releases it; to be called exactly once */
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
