import type { DueDelivery } from '../store/deliveries/deliveries.ts'

/** `page`: rows read ahead at once. `low`: with fewer at hand, the next page is read while these go out. */
const FOR_QUICK = { page: 32, low: 8 }
/** A consumer that hangs would only keep them in memory. */
const FOR_SLOW = { page: 8, low: 1 }

/**
 * The head of a lane's deliveries that were never tried, in the order of the events: a window on the rows, never more than
 * a page and a bit. A hint may mean a row anywhere before its end (a successor that became ready, a commit that was
 * overtaken), so it makes the window stale: the next one is read from the beginning.
 */
export class FirstAttempts {
  #waiting: DueDelivery[] = []
  #stale = true
  #rereading = false
  /** Rows up to here were read since the window was last read from the beginning. */
  #readUpTo = 0
  #mayHaveMore = true

  /** What is at hand may not be what comes next. */
  get stale(): boolean {
    return this.#stale || this.#rereading
  }

  runsLow(slow: boolean): boolean {
    return this.#mayHaveMore && this.#waiting.length < (slow ? FOR_SLOW : FOR_QUICK).low
  }

  invalidate(): void {
    this.#stale = true
  }

  /** The rows could not be read. */
  failLook(): void {
    this.#stale = true
    this.#rereading = false
  }

  peek(): DueDelivery | undefined {
    return this.#waiting[0]
  }

  shift(): void {
    this.#waiting.shift()
  }

  /** What to read next. From here on a hint is news. @param inFlight first attempts under way, which the rows still show */
  beginLook(inFlight: number, slow: boolean): { afterSeq: number; limit: number } {
    if (this.#stale) {
      this.#stale = false
      this.#rereading = true
      this.#readUpTo = 0
    }
    return { afterSeq: this.#readUpTo, limit: (slow ? FOR_SLOW : FOR_QUICK).page + inFlight }
  }

  /** @param taken whether a row is under way, or was while the page was read */
  endLook(
    asked: { afterSeq: number; limit: number },
    page: readonly DueDelivery[],
    taken: (id: string) => boolean,
  ): void {
    if (asked.afterSeq === 0) this.#waiting = []
    this.#rereading = false
    this.#waiting.push(...page.filter(delivery => !taken(delivery.id)))
    this.#mayHaveMore = page.length === asked.limit
    this.#readUpTo = page.at(-1)?.seq ?? this.#readUpTo
  }
}
