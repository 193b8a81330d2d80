/**
 * Groups work into short time windows, so that many small writes share a commit. The first work runs at once; work that
 * arrives within the window after it runs together when the window ends. A quiet connection has no delay, and a busy one
 * has a few milliseconds.
 */
export class Batcher {
  readonly #windowMs: number
  #pending: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  run(work: () => void): void {
    if (this.#timer) {
      this.#pending.push(work)
      return
    }
    this.#open()
    work()
  }

  runAsync<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.run(() => work().then(resolve, reject)))
  }

  #open(): void {
    this.#timer = setTimeout(() => this.#close(), this.#windowMs)
  }

  #close(): void {
    this.#timer = undefined
    const batch = this.#pending
    if (batch.length === 0) return
    this.#pending = []
    this.#open()
    for (const work of batch) work()
  }
}
