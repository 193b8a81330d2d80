/** A login costs a processor some 10 ms, most of them to check the certificate of the server: room for as much again. */
const APART_MS = 25

/**
 * Shared by all connections of a node: their sockets are opened one after the other, first come, first served, so that
 * what callers ask is answered between when hundreds of instances come back at once. On a busy processor the timer is
 * late, and the openings move further apart by themselves.
 */
export class Openings {
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined

  /** Resolves when it is the caller's turn, or at once when `signal` is aborted. */
  take(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const go = () => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiting = this.#waiting.filter(waiting => waiting !== go)
        resolve()
      }
      if (signal.aborted) return resolve()
      if (!this.#timer) {
        this.#rest()
        return resolve()
      }
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.push(go)
    })
  }

  #rest(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const next = this.#waiting.shift()
      if (!next) return
      this.#rest()
      next()
    }, APART_MS)
  }
}
