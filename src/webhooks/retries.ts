import type { DueDelivery } from '../store/store.ts'

interface Appointment {
  delivery: DueDelivery
  /** On the monotonic clock. */
  startAt: number
}

export interface Moment {
  now: number
  monotonic: number
}

/** Rows read at once. */
const PAGE = 32
/** Rows are read ahead only when fewer than this are at hand. */
const LOW = 16
const MAX_WAITING = 64
/** What is due later than this is left to the rows. */
const LOOK_AHEAD_MS = 5_000
/** So long before it is due, the first of the rows left is read. */
const LEAD_MS = 2_000

/**
 * The lane's next retries, each with its moment on the monotonic clock. A retry that is due soon stays in memory as soon
 * as its attempt has failed; later ones are read shortly before they are due. Whatever waits here is due no later than
 * anything left in the rows, so the earliest always starts first.
 *
 * A wall clock that jumps leaves what waits here alone. A retry still in the rows comes early by a jump forward, and late by
 * a jump back, but never later than its whole delay from when it was read; the lane's cap holds either way.
 */
export class Retries {
  readonly #delaysMs: readonly number[]
  #waiting: Appointment[] = []
  /** No row left unread is due before this. */
  #restFrom = Number.NEGATIVE_INFINITY

  constructor(delaysMs: readonly number[]) {
    this.#delaysMs = delaysMs
  }

  peek(): Appointment | undefined {
    return this.#waiting[0]
  }

  shift(): void {
    this.#waiting.shift()
  }

  /** When to read rows, on the monotonic clock; Infinity while there is no need to. */
  get lookAt(): number {
    return this.#waiting.length < LOW ? this.#restFrom - LEAD_MS : Number.POSITIVE_INFINITY
  }

  /** A retry that was just recorded. */
  add(delivery: DueDelivery, startAt: number, monotonic: number): void {
    if (startAt > Math.min(this.#restFrom, monotonic + LOOK_AHEAD_MS)) {
      this.#restFrom = Math.min(this.#restFrom, startAt)
      return
    }
    this.#insert({ delivery, startAt })
    const evicted = this.#waiting.length > MAX_WAITING ? this.#waiting.pop() : undefined
    if (evicted) this.#restFrom = Math.min(this.#restFrom, evicted.startAt)
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
  endLook(limit: number, page: readonly DueDelivery[], taken: (id: string) => boolean, at: Moment): void {
    const known = new Set(this.#waiting.map(({ delivery }) => delivery.id))
    const found = page
      .filter(({ id }) => !taken(id) && !known.has(id))
      .map(delivery => ({ delivery, startAt: this.#startOf(delivery, at) }))
    const last = page.at(-1)
    if (last && page.length === limit) this.#restFrom = Math.min(this.#restFrom, this.#startOf(last, at))
    for (const appointment of found) {
      if (appointment.startAt <= at.monotonic + LOOK_AHEAD_MS) this.#insert(appointment)
      else this.#restFrom = Math.min(this.#restFrom, appointment.startAt)
    }
    this.#waiting = this.#waiting.filter(({ startAt }) => startAt <= this.#restFrom)
  }

  #startOf(delivery: DueDelivery, at: Moment): number {
    const wholeDelay = this.#delaysMs[delivery.attemptNumber - 2] ?? Number.POSITIVE_INFINITY
    return at.monotonic + Math.min(delivery.dueAt - at.now, wholeDelay)
  }

  #insert(appointment: Appointment): void {
    const later = this.#waiting.findIndex(({ startAt }) => startAt > appointment.startAt)
    this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, appointment)
  }
}
