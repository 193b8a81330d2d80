/**
 * Lets small things happen together that would otherwise each cost a commit: the first one runs at once, what comes
 * within the window after it runs together at its end. A quiet connection thus pays nothing, a busy one a few
 * milliseconds, and the store sees a burst that shares one commit.
 */
export class Gatherer {
  readonly #windowMs: number
  #works: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  run(work: () => void): void {
    if (this.#timer) {
      this.#works.push(work)
      return
    }
    this.#open()
    work()
  }

  /** The same for what has an outcome. */
  ask<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.run(() => work().then(resolve, reject)))
  }

  #open(): void {
    this.#timer = setTimeout(() => this.#close(), this.#windowMs)
  }

  #close(): void {
    this.#timer = undefined
    const works = this.#works
    if (works.length === 0) return
    this.#works = []
    this.#open()
    for (const work of works) work()
  }
}
