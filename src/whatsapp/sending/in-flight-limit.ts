export interface RoomOptions {
  /** Taken at the same time, by those that are brisk and in all. */
  brisk: number
  inAll: number
  /** Whoever takes longer waits for WhatsApp. */
  briskMs: number
  /** Somebody is not brisk any more. */
  onFreed(): void
}

/** So many at the same time; those that take long leave their room to others, up to a limit. */
export class Room {
  readonly #options: RoomOptions
  #brisk = 0
  #inAll = 0

  constructor(options: RoomOptions) {
    this.#options = options
  }

  get isLeft(): boolean {
    return this.#brisk < this.#options.brisk && this.#inAll < this.#options.inAll
  }

  /** @returns to be called once, at the end */
  take(): () => void {
    this.#brisk += 1
    this.#inAll += 1
    let timer: NodeJS.Timeout | undefined = setTimeout(() => {
      timer = undefined
      this.#brisk -= 1
      this.#options.onFreed()
    }, this.#options.briskMs)
    return () => {
      this.#inAll -= 1
      if (timer === undefined) return
      clearTimeout(timer)
      this.#brisk -= 1
    }
  }
}
