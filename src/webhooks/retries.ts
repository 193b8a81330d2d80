import type { DueDelivery } from '../store/deliveries/deliveries.ts'

/** Rows read at once. */
const PAGE = 32
/** Rows are read ahead only when fewer than this are at hand. */
const LOW = 16
const MAX_WAITING = 64
/** What is due later than this is left to the rows. */
const LOOK_AHEAD_MS = 5_000
/** So long before it is due, the first of the rows left is read. */
const LEAD_MS = 2_000
/** Clocks of two nodes may differ by this much. */
const CLOCKS_DIFFER_MS = 1_000

/**
 * The lane's next retries. A retry that is due soon stays in memory as soon as its attempt has failed; later ones are read
 * shortly before they are due. Whatever waits here is due no later than anything left in the rows, so the earliest always
 * starts first. Times are those of the steady clock.
 */
export class Retries {
  #waiting: DueDelivery[] = []
  /** No row left unread is due before this. */
  #restFrom = Number.NEGATIVE_INFINITY

  /** The one to start next, at its `dueAt`. */
  peek(): DueDelivery | undefined {
    return this.#waiting[0]
  }

  shift(): void {
    this.#waiting.shift()
  }

  /** When to read rows; Infinity while there is no need to. */
  get lookAt(): number {
    return this.#waiting.length < LOW ? this.#restFrom - LEAD_MS : Number.POSITIVE_INFINITY
  }

  /** A retry that was just recorded. */
  add(delivery: DueDelivery, now: number): void {
    if (delivery.dueAt > Math.min(this.#restFrom, now + LOOK_AHEAD_MS)) {
      this.#restFrom = Math.min(this.#restFrom, delivery.dueAt)
      return
    }
    this.#insert(delivery)
    const evicted = this.#waiting.length > MAX_WAITING ? this.#waiting.pop() : undefined
    if (evicted) this.#restFrom = Math.min(this.#restFrom, evicted.dueAt)
  }

  /** How many rows to read, earliest due first. @param inFlight retries under way, which the rows still show */
  beginLook(inFlight: number): number {
    this.#restFrom = Number.POSITIVE_INFINITY
    return PAGE + this.#waiting.length + inFlight
  }

  /** The rows are to be looked at (again). */
  invalidate(): void {
    this.#restFrom = Number.NEGATIVE_INFINITY
  }

  /** @param taken whether a row is under way, or was while the page was read */
  endLook(limit: number, page: readonly DueDelivery[], taken: (id: string) => boolean, now: number): void {
    const rows = page.map(row => withPossibleDue(row, now))
    const known = new Set(this.#waiting.map(({ id }) => id))
    const last = rows.at(-1)
    if (last && rows.length === limit) this.#restFrom = Math.min(this.#restFrom, last.dueAt)
    for (const row of rows) {
      if (taken(row.id) || known.has(row.id)) continue
      if (row.dueAt <= now + LOOK_AHEAD_MS) this.#insert(row)
      else this.#restFrom = Math.min(this.#restFrom, row.dueAt)
    }
    this.#waiting = this.#waiting.filter(({ dueAt }) => dueAt <= this.#restFrom)
  }

  #insert(delivery: DueDelivery): void {
    const later = this.#waiting.findIndex(({ dueAt }) => dueAt > delivery.dueAt)
    this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, delivery)
  }
}

/** An attempt that failed later than now was recorded by a clock that was set back since: its retry is due now. */
function withPossibleDue(row: DueDelivery, now: number): DueDelivery {
  return row.failedAt !== null && row.failedAt > now + CLOCKS_DIFFER_MS ? { ...row, dueAt: now } : row
}
