/**
 * Groups work into short time windows, so that many small writes share a commit. The first work runs at once; work that
 * arrives within the window after it runs together when the window ends. A quiet connection has no delay, and a busy one
 * has a few milliseconds.
 */
export class Batcher {
  readonly #windowMs: number
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Resolves at once, or at the end of the current window. */
  turn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#timer) this.#waiting.push(resolve)
    else {
      this.#timer = setTimeout(this.#close, this.#windowMs)
      resolve()
    }
    return promise
  }

  readonly #close = (): void => {
    this.#timer = undefined
    const batch = this.#waiting
    if (batch.length === 0) return
    this.#waiting = []
    this.#timer = setTimeout(this.#close, this.#windowMs)
    for (const start of batch) start()
  }
}
