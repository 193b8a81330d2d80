import { systemClock } from '../../kit/clock.ts'
import type { StoreClock } from '../clock.ts'

/** After this time without a renewal, a node stops acting for its instances, 5 s before another node may take over. */
export const VALID_FOR_MS = 10_000

/** A moment on both clocks of the machine. All threads of a process read the same clocks. */
export interface Moment {
  steady: number
  now: number
}

/** The last renewal of this node's leases. The larger of its ages by the two clocks counts: either may stand still. */
export class Renewal {
  readonly #clock: StoreClock
  /** When the last renewal began; null before the first. */
  startedAt: Moment | null
  /** Renews the leases immediately. Called by `mayAct` each time that it returns false. */
  onExpired: () => void = () => undefined

  constructor(clock: StoreClock = systemClock, startedAt: Moment | null = null) {
    this.#clock = clock
    this.startedAt = startedAt
  }

  get present(): Moment {
    return { steady: this.#clock.steady(), now: this.#clock.now() }
  }

  get ageMs(): number {
    if (this.startedAt === null) return Number.POSITIVE_INFINITY
    const { steady, now } = this.startedAt
    return Math.max(this.#clock.steady() - steady, this.#clock.now() - now)
  }

  /**
   * False if another node may have taken over. The leases are then renewed immediately. Must be called before each send
   * and each POST: in a process that was suspended, timers and sockets fire before the process notices that its leases
   * are lost.
   */
  readonly mayAct = (): boolean => {
    if (this.ageMs < VALID_FOR_MS) return true
    this.onExpired()
    return false
  }

  /** Milliseconds until the renewal is too old, on the monotonic clock. For a timer. */
  get validForMs(): number {
    return this.startedAt === null ? 0 : this.startedAt.steady + VALID_FOR_MS - this.#clock.steady()
  }
}
