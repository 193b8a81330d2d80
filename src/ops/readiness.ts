import { withDeadline } from '../kit/deadline.ts'

/** A probe waits little longer; a store that takes this long cannot be called able to accept. */
const ANSWER_WITHIN_MS = 2_000
/** However often the node is asked, the store is written for it at most once in this time. */
const KEPT_MS = 500

export interface ReadinessSources {
  /** Rejects unless the store can write. */
  ping(): Promise<void>
  /** Whether this node holds its leases: without them it would accept, but not deliver. */
  isRunning(): boolean
  /** Milliseconds on a clock that never jumps. */
  now?: () => number
}

/** Whether this node should be sent calls. */
export class Readiness {
  readonly #sources: ReadinessSources
  readonly #now: () => number
  #wroteAt = Number.NEGATIVE_INFINITY
  #isDraining = false

  constructor(sources: ReadinessSources) {
    this.#sources = sources
    this.#now = sources.now ?? (() => performance.now())
  }

  /** Whether this node is about to stop: it still accepts, but callers should go elsewhere. */
  get isDraining(): boolean {
    return this.#isDraining
  }

  /** From now on this node is not ready. */
  drain(): void {
    this.#isDraining = true
  }

  /** Whether this node can accept and deliver now, and will go on. Never rejects. */
  async check(): Promise<boolean> {
    const { isRunning, ping } = this.#sources
    if (this.#isDraining || !isRunning()) return false
    if (this.#now() - this.#wroteAt < KEPT_MS) return true
    try {
      await withDeadline(ANSWER_WITHIN_MS, ping())
    } catch {
      return false
    }
    this.#wroteAt = this.#now()
    return !this.#isDraining
  }
}
