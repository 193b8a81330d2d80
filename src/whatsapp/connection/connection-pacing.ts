import { performance } from 'node:perf_hooks'

/** A login takes at least 10 ms of CPU time, most of it to verify the server's certificate. */
const INTERVAL_MS = 25
/** The interval is extended while the event loop was busy for more than this share of it. */
const MAX_UTILIZATION = 0.6
/** The extended interval is at most this many times as long, so a busy node still connects its instances. */
const MAX_EXTENSIONS = 4

type Utilization = typeof performance.eventLoopUtilization

/**
 * Spaces out the opening of sockets, first come, first served. All connections of a thread share it. When hundreds of
 * instances reconnect at once, the node still answers requests.
 */
export class ConnectionPacing {
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #utilization: Utilization
  readonly #intervalMs: number

  /** @param threads the number of threads that open sockets, each with its own pacing */
  constructor(utilization: Utilization = performance.eventLoopUtilization, threads = 1) {
    this.#utilization = utilization
    this.#intervalMs = INTERVAL_MS * threads
  }

  /** Resolves when the caller may open a socket, or at once when `signal` is aborted. */
  take(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const proceed = () => {
        signal.removeEventListener('abort', cancel)
        resolve()
      }
      const cancel = () => {
        this.#waiting = this.#waiting.filter(waiting => waiting !== proceed)
        resolve()
      }
      if (signal.aborted) return resolve()
      if (!this.#timer) {
        this.#startInterval()
        return resolve()
      }
      signal.addEventListener('abort', cancel, { once: true })
      this.#waiting.push(proceed)
    })
  }

  #startInterval(): void {
    const atStart = this.#utilization()
    let intervals = 0
    const wait = () => {
      intervals += 1
      this.#timer = setTimeout(() => {
        if (this.#utilization(atStart).utilization > MAX_UTILIZATION && intervals < MAX_EXTENSIONS) return wait()
        this.#timer = undefined
        const next = this.#waiting.shift()
        if (!next) return
        this.#startInterval()
        next()
      }, this.#intervalMs)
    }
    wait()
  }
}
