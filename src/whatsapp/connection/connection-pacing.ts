import { performance } from 'node:perf_hooks'

/** A login takes at least 10 ms of CPU time, most of it to verify the server's certificate. */
const INTERVAL_MS = 25
/** The interval is extended while the event loop was busy for more than this share of it. */
const MAX_UTILIZATION = 0.6
/** The extended interval is at most this many times as long, so a busy node still connects its instances. */
const MAX_EXTENSIONS = 4

type Utilization = typeof performance.eventLoopUtilization

/**
 * Spaces out the opening of sockets. All connections of a thread share it. When hundreds of instances reconnect at once, the
 * node still answers requests. Urgent callers, for whom a person waits, go first; otherwise first come, first served.
 */
export class ConnectionPacing {
  readonly #urgent = new Map<object, () => void>()
  readonly #waiting = new Map<object, () => void>()
  #timer: NodeJS.Timeout | undefined
  readonly #utilization: Utilization
  readonly #intervalMs: number

  /** @param threads the number of threads that open sockets, each with its own pacing */
  constructor(utilization: Utilization = performance.eventLoopUtilization, threads = 1) {
    this.#utilization = utilization
    this.#intervalMs = INTERVAL_MS * threads
  }

  /**
   * Resolves when the caller may open a socket, or at once when `signal` is aborted.
   * @param caller makes one call at a time
   */
  take(caller: object, signal: AbortSignal, isUrgent = false): Promise<void> {
    return new Promise(resolve => {
      const proceed = () => {
        signal.removeEventListener('abort', cancel)
        resolve()
      }
      const cancel = () => {
        this.#urgent.delete(caller)
        this.#waiting.delete(caller)
        resolve()
      }
      if (signal.aborted) return resolve()
      if (!this.#timer) {
        this.#startInterval()
        return resolve()
      }
      signal.addEventListener('abort', cancel, { once: true })
      const queue = isUrgent ? this.#urgent : this.#waiting
      queue.set(caller, proceed)
    })
  }

  /** Makes the caller's call urgent, if it waits. */
  hurry(caller: object): void {
    const proceed = this.#waiting.get(caller)
    if (!proceed) return
    this.#waiting.delete(caller)
    this.#urgent.set(caller, proceed)
  }

  #startInterval(): void {
    const atStart = this.#utilization()
    let intervals = 0
    const wait = () => {
      intervals += 1
      this.#timer = setTimeout(() => {
        if (this.#utilization(atStart).utilization > MAX_UTILIZATION && intervals < MAX_EXTENSIONS) return wait()
        this.#timer = undefined
        const queue = this.#urgent.size > 0 ? this.#urgent : this.#waiting
        const [next] = queue
        if (!next) return
        const [caller, proceed] = next
        queue.delete(caller)
        this.#startInterval()
        proceed()
      }, this.#intervalMs)
    }
    wait()
  }
}
