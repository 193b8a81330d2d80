import type { Clock } from '../kit/clock.ts'
import type { Foreground } from '../kit/foreground.ts'
import { FailurePace } from './failure-pace.ts'

/**
 * The speed of a consumer, set whenever one of its requests ends or has been open for a second: `fast` if it ended within the
 * second, else `slow`. `unknown` until then.
 */
export type ConsumerSpeed = 'unknown' | 'fast' | 'slow'

/** A lane, which requests permits for its attempts. */
export interface LimitedUser {
  /** The users of a group share its turns. A group is the endpoints of one instance. */
  readonly group: string
  /** The speed of the lane's consumer, as seen by this lane. `unknown` at first, then set by the limit. */
  speed: ConsumerSpeed
  /** Whether the lane's latest attempt failed. */
  readonly isFailing: boolean
  /** A permit may be free now. The user acquires it immediately or leaves it to the next user. */
  onPermit(): void
}

/** The right to have one request open. */
export interface Permit {
  release(): void
  /** Returns an unused permit, which says nothing about the consumer's speed. */
  giveBack(): void
}

export interface ConcurrencyLimit {
  /**
   * Null if no permit is free, if the user's first request is open and its consumer's speed still unknown, or if the user fails
   * fast and must wait for others (`FailurePace`). The limit calls `onPermit` later, when it is the user's turn.
   */
  acquire(user: LimitedUser): Permit | null
  remove(user: LimitedUser): void
}

/** A request that is open for this long makes its consumer slow, until another request ends sooner. */
const SLOW_AFTER_MS = 1_000

/** A fixed number of permits. Waiting groups get one permit each, in turn, and so do the users of a group. */
class Pool {
  acquired = 0
  readonly capacity: number
  readonly #waiting = new Map<string, Set<LimitedUser>>()
  #called: LimitedUser | null = null

  constructor(capacity: number) {
    this.capacity = capacity
  }

  acquire(user: LimitedUser): boolean {
    const allowed = this.acquired < this.capacity && (this.#waiting.size === 0 || this.#called === user)
    if (allowed) this.acquired += 1
    else this.#wait(user)
    if (this.#called === user) this.#called = null
    return allowed
  }

  /** Calls the waiting users in turn while permits are free. */
  release(): void {
    this.acquired -= 1
    for (const [group, users] of this.#waiting) {
      if (this.acquired >= this.capacity) return
      const [user] = users
      // The user moves to the end of its group, and the group to the end of all groups.
      this.#waiting.delete(group)
      users.delete(user!)
      if (users.size > 0) this.#waiting.set(group, users)
      this.#called = user!
      user!.onPermit()
      this.#called = null
    }
  }

  remove(user: LimitedUser): void {
    const users = this.#waiting.get(user.group)
    users?.delete(user)
    if (users?.size === 0) this.#waiting.delete(user.group)
  }

  #wait(user: LimitedUser): void {
    const users = this.#waiting.get(user.group) ?? new Set()
    this.#waiting.set(user.group, users.add(user))
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
  /** Users whose first request is open. */
  const probing = new Set<LimitedUser>()

  function endProbe(user: LimitedUser): void {
    if (probing.delete(user)) user.onPermit()
  }

  return {
    acquire(user) {
      const acquiredFrom = pools[user.speed]
      // A user that fails slowly is not held up: the slow half is often full, so a free permit must be used.
      const failsFast = user.isFailing && user.speed === 'fast'
      if (probing.has(user) || (failsFast && !failures.mayStart(user))) return null
      if (!acquiredFrom.acquire(user)) return null
      let pool = acquiredFrom
      let speed: ConsumerSpeed = 'fast'
      if (user.speed === 'unknown') probing.add(user)
      const cancel = clock.after(SLOW_AFTER_MS, () => {
        speed = user.speed = 'slow'
        if (pool !== slow && slow.acquired < slow.capacity) {
          slow.acquired += 1
          pool = slow
          acquiredFrom.release()
        }
        endProbe(user)
      })
      return {
        release() {
          cancel()
          user.speed = speed
          pool.release()
          endProbe(user)
        },
        giveBack() {
          cancel()
          probing.delete(user)
          pool.release()
        },
      }
    },
    remove(user) {
      probing.delete(user)
      failures.remove(user)
      for (const pool of Object.values(pools)) pool.remove(user)
    },
  }
}
