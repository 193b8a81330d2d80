import type { Clock } from '../kit/clock.ts'
import type { Foreground } from '../kit/foreground.ts'
import { FailurePace } from './failure-pace.ts'

/**
 * The speed of a consumer, set whenever one of its requests ends or has been open for a second: `fast` if it ended within the
 * second, else `slow`. `unknown` until then.
 */
export type ConsumerSpeed = 'unknown' | 'fast' | 'slow'

/** A lane, which requests permits for its attempts. */
export interface LimitedLane {
  /** The lanes of a group share its turns. A group is the lanes of one instance. */
  readonly group: string
  /** The speed of the lane's consumer, as seen by this lane. `unknown` at first, then set by the limit. */
  speed: ConsumerSpeed
  /** Whether the lane's latest attempt failed. */
  readonly isFailing: boolean
  /** A permit may be free now. The lane calls `acquire` before this returns, or leaves its turn to the next lane. */
  onPermit(): void
}

/** The right to have one request open. */
export interface Permit {
  /** The request is sent now. Its duration, which sets the consumer's speed, begins here. */
  begin(): void
  release(): void
  /** Returns a permit whose request got no outcome, which says nothing about the consumer's speed. */
  giveBack(): void
}

export interface ConcurrencyLimit {
  /**
   * Null if no permit is free, if the lane's first request is open and its consumer's speed still unknown, or if the lane fails
   * fast and must wait for others (`FailurePace`). The limit calls `onPermit` later, when it is the lane's turn.
   */
  acquire(lane: LimitedLane): Permit | null
  remove(lane: LimitedLane): void
}

/** A request that is open for this long makes its consumer slow, until another request ends sooner. */
const SLOW_AFTER_MS = 1_000

/** A fixed number of permits. Waiting groups get one permit each, in turn, and so do the lanes of a group. */
class Pool {
  acquired = 0
  readonly capacity: number
  readonly #waiting = new Map<string, Set<LimitedLane>>()
  /** Has its turn: its `onPermit` is running and calls `acquire`. */
  #called: LimitedLane | null = null

  constructor(capacity: number) {
    this.capacity = capacity
  }

  acquire(lane: LimitedLane): boolean {
    const allowed = this.acquired < this.capacity && (this.#waiting.size === 0 || this.#called === lane)
    if (allowed) this.acquired += 1
    else this.#wait(lane)
    if (this.#called === lane) this.#called = null
    return allowed
  }

  /** Calls the waiting lanes in turn while permits are free. */
  release(): void {
    this.acquired -= 1
    for (const [group, lanes] of this.#waiting) {
      if (this.acquired >= this.capacity) return
      const [lane] = lanes
      // The lane moves to the end of its group, and the group to the end of all groups.
      this.#waiting.delete(group)
      lanes.delete(lane!)
      if (lanes.size > 0) this.#waiting.set(group, lanes)
      this.#called = lane!
      lane!.onPermit()
      this.#called = null
    }
  }

  remove(lane: LimitedLane): void {
    const lanes = this.#waiting.get(lane.group)
    lanes?.delete(lane)
    if (lanes?.size === 0) this.#waiting.delete(lane.group)
  }

  #wait(lane: LimitedLane): void {
    const lanes = this.#waiting.get(lane.group) ?? new Set()
    this.#waiting.set(lane.group, lanes.add(lane))
  }
}

/**
 * Limits the open requests of this node. Half of `capacity` is reserved for fast consumers, the other half for slow ones. A
 * request that has been open for a second moves to the slow half if that has a free permit, so consumers that hang do
 * not starve those that answer.
 *
 * Consumers of unknown speed may open one request each, from a third pool of size `capacity`: after a start, a consumer
 * that answers must not wait behind a thousand that hang.
 */
export function createConcurrencyLimit(
  capacity: number,
  clock: Clock,
  foreground: Pick<Foreground, 'hasPriority'>,
): ConcurrencyLimit {
  const pools: Record<ConsumerSpeed, Pool> = {
    unknown: new Pool(capacity),
    fast: new Pool(Math.ceil(capacity / 2)),
    slow: new Pool(Math.max(1, Math.floor(capacity / 2))),
  }
  const { slow } = pools
  const failures = new FailurePace(clock, foreground)
  /** Lanes whose first request is open. */
  const probing = new Set<LimitedLane>()

  return {
    acquire(lane) {
      const acquiredFrom = pools[lane.speed]
      // A lane that fails slowly is not held up: the slow half is often full, so a free permit must be used.
      const failsFast = lane.isFailing && lane.speed === 'fast'
      if (probing.has(lane) || (failsFast && !failures.mayStart(lane))) return null
      if (!acquiredFrom.acquire(lane)) return null
      let pool = acquiredFrom
      let speed: ConsumerSpeed = 'fast'
      if (lane.speed === 'unknown') probing.add(lane)
      let cancel: (() => void) | undefined
      return {
        begin() {
          cancel = clock.after(SLOW_AFTER_MS, () => {
            speed = lane.speed = 'slow'
            if (pool !== slow && slow.acquired < slow.capacity) {
              slow.acquired += 1
              pool = slow
              acquiredFrom.release()
            }
            if (probing.delete(lane)) lane.onPermit()
          })
        },
        release() {
          cancel?.()
          lane.speed = speed
          pool.release()
          if (probing.delete(lane)) lane.onPermit()
        },
        giveBack() {
          cancel?.()
          probing.delete(lane)
          pool.release()
        },
      }
    },
    remove(lane) {
      probing.delete(lane)
      failures.remove(lane)
      for (const pool of Object.values(pools)) pool.remove(lane)
    },
  }
}
