/** Runs steps in their order, each a given time after it was added. Without a delay it runs them at once. */
export class DelayLine {
  readonly #waiting: { at: number; run: () => void }[] = []
  #timer: NodeJS.Timeout | undefined
  #lastAt = 0

  add(delayMs: number, run: () => void): void {
    if (delayMs === 0 && this.#waiting.length === 0) {
      run()
      return
    }
    this.#lastAt = Math.max(this.#lastAt, Date.now() + delayMs)
    this.#waiting.push({ at: this.#lastAt, run })
    this.#timer ??= setTimeout(() => this.#run(), delayMs)
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#waiting.length = 0
  }

  #run(): void {
    this.#timer = undefined
    while (this.#waiting[0] && this.#waiting[0].at <= Date.now()) this.#waiting.shift()!.run()
    const [next] = this.#waiting
    if (next) this.#timer ??= setTimeout(() => this.#run(), Math.max(1, next.at - Date.now()))
  }
}
