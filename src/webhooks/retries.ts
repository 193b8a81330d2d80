import type { DueDelivery } from '../store/deliveries/deliveries.ts'

/** New rows in one read, in addition to those that are in memory or in flight. */
const PAGE = 32
/** Rows are read only while fewer than this are in memory. */
const LOW = 16
const MAX_WAITING = 64
/** Retries due later than this are not kept in memory. */
const READ_AHEAD_MS = 5_000
/** How long before its due time the next unread row is read. */
const LEAD_MS = 2_000
/** The accepted difference between the clocks of two nodes. */
const CLOCK_TOLERANCE_MS = 1_000

/**
 * A lane's next retries. After a failed attempt, a retry that is due soon stays in memory. Later retries are read shortly
 * before they are due. Every retry in memory is due before every unread row, so the earliest starts first. All times are on
 * the steady clock.
 */
export class Retries {
  #waiting: DueDelivery[] = []
  /** No unread row is due before this. */
  #unreadFrom = Number.NEGATIVE_INFINITY

  peek(): DueDelivery | undefined {
    return this.#waiting[0]
  }

  shift(): void {
    this.#waiting.shift()
  }

  /** When to read rows; Infinity while enough are in memory. */
  get readAt(): number {
    return this.#waiting.length < LOW ? this.#unreadFrom - LEAD_MS : Number.POSITIVE_INFINITY
  }

  /** @param delivery a retry that was just recorded */
  add(delivery: DueDelivery, now: number): void {
    if (delivery.dueAt > Math.min(this.#unreadFrom, now + READ_AHEAD_MS)) {
      this.#unreadFrom = Math.min(this.#unreadFrom, delivery.dueAt)
      return
    }
    this.#insert(delivery)
    const evicted = this.#waiting.length > MAX_WAITING ? this.#waiting.pop() : undefined
    if (evicted) this.#unreadFrom = Math.min(this.#unreadFrom, evicted.dueAt)
  }

  /** How many rows to read, earliest due first. @param inFlight retries in flight, which the page contains too */
  beginRead(inFlight: number): number {
    this.#unreadFrom = Number.POSITIVE_INFINITY
    return PAGE + this.#waiting.length + inFlight
  }

  /** Rows that are not in memory may be due. */
  invalidate(): void {
    this.#unreadFrom = Number.NEGATIVE_INFINITY
  }

  /** @param claimed the rows that are claimed, or were while the page was read */
  endRead(limit: number, page: readonly DueDelivery[], claimed: ReadonlySet<string>, now: number): void {
    const rows = page.map(row => withoutClockSkew(row, now))
    // A page is newer than memory: a request may have changed a due time.
    const read = new Set(page.map(({ id }) => id))
    this.#waiting = this.#waiting.filter(({ id }) => claimed.has(id) || !read.has(id))
    const last = rows.at(-1)
    if (last && rows.length === limit) this.#unreadFrom = Math.min(this.#unreadFrom, last.dueAt)
    for (const row of rows) {
      if (claimed.has(row.id)) continue
      if (row.dueAt <= now + READ_AHEAD_MS) this.#insert(row)
      else this.#unreadFrom = Math.min(this.#unreadFrom, row.dueAt)
    }
    this.#waiting = this.#waiting.filter(({ dueAt }) => dueAt <= this.#unreadFrom)
  }

  #insert(delivery: DueDelivery): void {
    const later = this.#waiting.findIndex(
      ({ dueAt, seq }) => dueAt > delivery.dueAt || (dueAt === delivery.dueAt && seq > delivery.seq),
    )
    this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, delivery)
  }
}

/** If an attempt seems to have failed in the future, the clock has been set back since. Its retry is then due now. */
function withoutClockSkew(row: DueDelivery, now: number): DueDelivery {
  return row.failedAt !== null && row.failedAt > now + CLOCK_TOLERANCE_MS ? { ...row, dueAt: now } : row
}
