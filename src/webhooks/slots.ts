import type { Clock } from './clock.ts'

/** Somebody who wants slots: a lane. */
export interface SlotUser {
  /** Its consumer answers slowly, or is not known yet: true at first, then kept up by the slots. */
  slow: boolean
  /** A slot may be free now: take it, or leave it to the next. */
  onSlot(): void
}

/** The right to have one request open. */
export interface Slot {
  release(): void
}

export interface Slots {
  /** Null when none is free: the user is then called in its turn. */
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
 * other half for the rest, where a request that hangs is moved to as soon as it is known to: so however many consumers hang,
 * those that answer find slots.
 */
export function createSlots(capacity: number, clock: Clock): Slots {
  const quick = new Pool(Math.ceil(capacity / 2))
  const slow = new Pool(Math.max(1, Math.floor(capacity / 2)))

  function hold(user: SlotUser, takenFrom: Pool): Slot {
    let pool = takenFrom
    let isSlow = false
    const cancel = clock.after(SLOW_AFTER_MS, () => {
      isSlow = true
      user.slow = true
      if (pool === slow || slow.held >= slow.capacity) return
      slow.held += 1
      pool = slow
      quick.release()
    })
    return {
      release() {
        cancel()
        user.slow = isSlow
        pool.release()
      },
    }
  }

  return {
    take(user) {
      const pool = user.slow ? slow : quick
      return pool.take(user) ? hold(user, pool) : null
    },
    forget(user) {
      quick.forget(user)
      slow.forget(user)
    },
  }
}
