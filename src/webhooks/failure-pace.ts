import type { Clock } from '../kit/clock.ts'
import type { Foreground } from '../kit/foreground.ts'

interface FailingLane {
  onPermit(): void
}

/** Between two starts. A failing attempt takes about a millisecond of the event loop. */
const APART_MS = 1

/**
 * Spreads the attempts at endpoints that fail fast: together, they start one attempt per millisecond, each lane in
 * turn. Otherwise nine failing endpoints would all get an event again at the same moment, and the post to a tenth
 * endpoint, which answers, would wait for them. No attempt starts while the foreground has priority, for example while
 * an event is stored.
 */
export class FailurePace {
  readonly #clock: Clock
  readonly #foreground: Pick<Foreground, 'hasPriority'>
  readonly #waiting = new Set<FailingLane>()
  /** Has its turn: its `onPermit` is running and calls `mayStart`. */
  #called: FailingLane | null = null
  #nextAt = Number.NEGATIVE_INFINITY
  #hasTimer = false

  constructor(clock: Clock, foreground: Pick<Foreground, 'hasPriority'>) {
    this.#clock = clock
    this.#foreground = foreground
  }

  /** Whether the lane may start one attempt now. Otherwise its `onPermit` is called when it is its turn. */
  mayStart(lane: FailingLane): boolean {
    const now = this.#clock.steady()
    const isFree = this.#waiting.size === 0 && now >= this.#nextAt && !this.#foreground.hasPriority
    const isItsTurn = this.#called === lane || isFree
    if (isItsTurn) {
      this.#called = null
      this.#nextAt = now + APART_MS
    } else {
      this.#waiting.add(lane)
      this.#setTimer(now)
    }
    return isItsTurn
  }

  remove(lane: FailingLane): void {
    this.#waiting.delete(lane)
  }

  #setTimer(now: number): void {
    if (this.#hasTimer) return
    this.#hasTimer = true
    this.#clock.after(this.#nextAt - now, () => this.#callNext())
  }

  #callNext(): void {
    this.#hasTimer = false
    const [lane] = this.#waiting
    if (lane === undefined) return
    if (this.#foreground.hasPriority) {
      this.#nextAt = this.#clock.steady() + APART_MS
    } else {
      this.#waiting.delete(lane)
      this.#called = lane
      lane.onPermit()
      this.#called = null
    }
    if (this.#waiting.size > 0) this.#setTimer(this.#clock.steady())
  }
}
