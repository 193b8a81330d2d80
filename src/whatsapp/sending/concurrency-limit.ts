/** Sends in flight at the same time, not counting slow ones. */
const MAX_FAST_SENDS = 24
/** A send that takes longer counts as slow: it waits for WhatsApp. */
const SLOW_AFTER_MS = 500
/** Sends in flight at the same time, including slow ones. */
const MAX_SENDS = 512

/** The right to have one send in flight. */
export interface Permit {
  /** Call exactly once. */
  release(): void
}

/** Limits the sends of one instance. A send that takes long stops counting against the limit of fast ones. */
export class ConcurrencyLimit {
  readonly #onPermit: () => void
  #fast = 0
  #total = 0

  /** @param onPermit called when a send became slow, so that another one may start */
  constructor(onPermit: () => void) {
    this.#onPermit = onPermit
  }

  /** Null if no permit is free. */
  acquire(): Permit | null {
    if (this.#fast >= MAX_FAST_SENDS || this.#total >= MAX_SENDS) return null
    this.#fast += 1
    this.#total += 1
    let timer: NodeJS.Timeout | undefined = setTimeout(() => {
      timer = undefined
      this.#fast -= 1
      this.#onPermit()
    }, SLOW_AFTER_MS)
    return {
      release: () => {
        this.#total -= 1
        if (timer === undefined) return
        clearTimeout(timer)
        this.#fast -= 1
      },
    }
  }
}
