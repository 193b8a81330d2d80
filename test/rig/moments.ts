/** Something that happens again and again, to be waited for. */
export class Moments {
  #waiting: (() => void)[] = []

  happened(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const tell of waiting) tell()
  }

  /** Resolves, within the same turn, when it happens next; or when `withinMs` have passed without. */
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
