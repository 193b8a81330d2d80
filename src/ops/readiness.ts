import { withDeadline } from '../kit/deadline.ts'

/** A slower store counts as unavailable. Typical probes time out soon after this. */
const PING_TIMEOUT_MS = 2_000
/** A successful write to the store is trusted for this time, however many probes come. */
const FRESH_MS = 500

export interface ReadinessSources {
  /** Rejects unless the store can be written. */
  ping(): Promise<void>
  /** Whether this node holds its leases. Without them it would accept messages but not send them. */
  isRunning(): boolean
  /** Milliseconds on a clock that never jumps. */
  now?: () => number
}

/** Whether this node should receive API calls. */
export class Readiness {
  /** Whether this node is about to stop. It still accepts calls, but new ones should go to other nodes. */
  isDraining = false
  readonly #sources: ReadinessSources
  readonly #now: () => number
  #wroteAt = Number.NEGATIVE_INFINITY

  constructor(sources: ReadinessSources) {
    this.#sources = sources
    this.#now = sources.now ?? (() => performance.now())
  }

  /** Whether this node can accept and send messages, and is not about to stop. Never rejects. */
  async check(): Promise<boolean> {
    const { isRunning, ping } = this.#sources
    if (this.isDraining || !isRunning()) return false
    if (this.#now() - this.#wroteAt < FRESH_MS) return true
    try {
      await withDeadline(PING_TIMEOUT_MS, ping())
    } catch {
      return false
    }
    this.#wroteAt = this.#now()
    return !this.isDraining
  }
}
