/** A repeated occurrence that others can wait for. */
export class Notifier {
  #waiting: (() => void)[] = []

  notify(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }

  /** Resolves at the next `notify`, in the same turn of the event loop, or after `withinMs`. */
  next(withinMs: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, withinMs)
      this.#waiting.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}
