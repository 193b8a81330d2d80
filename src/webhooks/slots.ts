import type { Clock } from './clock.ts'

/** How soon a consumer answers, by its latest request that ended or hangs; `untried`: none has, since its lane began. */
export type Pace = 'untried' | 'quick' | 'slow'

/** Somebody who wants slots: a lane. */
export interface SlotUser {
  /** `untried` at first, then kept up by the slots. */
  pace: Pace
  /** A slot may be free now: take it, or leave it to the next. */
  onSlot(): void
}

/** The right to have one request open. */
export interface Slot {
  release(): void
}

export interface Slots {
  /** Null when none is free, or the user's first request has yet to show its pace: the user is then called in its turn. */
  take(user: SlotUser): Slot | null
  /** The user wants none any more. */
  forget(user: SlotUser): void
}

/** A request that has been open for so long makes its lane a slow one, until one ends sooner. */
const SLOW_AFTER_MS = 1_000

/** So many slots, handed out in turn: one to each user that waits, then again. */
class Pool {
  held = 0
  readonly capacity: number
  readonly #waiting = new Set<SlotUser>()
  #turn: SlotUser | null = null

  constructor(capacity: number) {
    this.capacity = capacity
  }

  take(user: SlotUser): boolean {
    const allowed = this.held < this.capacity && (this.#waiting.size === 0 || this.#turn === user)
    if (allowed) this.held += 1
    else this.#waiting.add(user)
    if (this.#turn === user) this.#turn = null
    return allowed
  }

  release(): void {
    this.held -= 1
    this.#callNext()
  }

  forget(user: SlotUser): void {
    this.#waiting.delete(user)
  }

  #callNext(): void {
    for (const user of this.#waiting) {
      if (this.held >= this.capacity) return
      this.#waiting.delete(user)
      this.#turn = user
      user.onSlot()
      this.#turn = null
    }
  }
}

/**
 * At most `capacity` requests open on this node. Half of them are for lanes whose consumers were seen to answer soon, the
 * other half for those that were not, where a request that hangs is moved to as soon as it is known to: so however many
 * consumers hang, those that answer find slots.
 *
 * A consumer that is untried tries with one request, and as many as `capacity` may do so besides: nobody knows yet who will
 * hang, and a consumer that answers must not wait for a thousand that do not.
 */
export function createSlots(capacity: number, clock: Clock): Slots {
  const pools: Record<Pace, Pool> = {
    untried: new Pool(capacity),
    quick: new Pool(Math.ceil(capacity / 2)),
    slow: new Pool(Math.max(1, Math.floor(capacity / 2))),
  }
  const { slow } = pools
  /** Users whose first request is open. */
  const trying = new Set<SlotUser>()

  function callIfTrying(user: SlotUser): void {
    if (trying.delete(user)) user.onSlot()
  }

  function hold(user: SlotUser, takenFrom: Pool): Slot {
    let pool = takenFrom
    let pace: Pace = 'quick'
    if (user.pace === 'untried') trying.add(user)
    const cancel = clock.after(SLOW_AFTER_MS, () => {
      pace = user.pace = 'slow'
      if (pool !== slow && slow.held < slow.capacity) {
        slow.held += 1
        pool = slow
        takenFrom.release()
      }
      callIfTrying(user)
    })
    return {
      release() {
        cancel()
        user.pace = pace
        pool.release()
        callIfTrying(user)
      },
    }
  }

  return {
    take(user) {
      if (trying.has(user)) return null
      const pool = pools[user.pace]
      return pool.take(user) ? hold(user, pool) : null
    },
    forget(user) {
      trying.delete(user)
      for (const pool of Object.values(pools)) pool.forget(user)
    },
  }
}
