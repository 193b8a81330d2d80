import { performance } from 'node:perf_hooks'

/** A login costs a processor 10 ms and more, most of them to check the certificate of the server: room for as much again. */
const APART_MS = 25
/** The next one waits while the event loop has been at work for more of the time since the one before. */
const MOST_BUSY = 0.6
/** So long at most: a node that is busy with something else logs in all the same. */
const AT_MOST_APART_MS = 100

type Utilization = typeof performance.eventLoopUtilization

/**
 * Shared by all connections of a node: their sockets are opened one after the other, first come, first served, and as far
 * apart as the processor needs, so that what callers ask is answered between when hundreds of instances come back at once.
 */
export class ConnectionPacing {
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #utilization: Utilization

  constructor(utilization: Utilization = performance.eventLoopUtilization) {
    this.#utilization = utilization
  }

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
    const atOpening = this.#utilization()
    let apartMs = 0
    const wait = () => {
      apartMs += APART_MS
      this.#timer = setTimeout(() => {
        if (this.#utilization(atOpening).utilization > MOST_BUSY && apartMs < AT_MOST_APART_MS) return wait()
        this.#timer = undefined
        const next = this.#waiting.shift()
        if (!next) return
        this.#rest()
        next()
      }, APART_MS)
    }
    wait()
  }
}
