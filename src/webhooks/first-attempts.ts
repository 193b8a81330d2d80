import type { DueDelivery } from '../store/deliveries/deliveries.ts'
import type { ConsumerSpeed } from './concurrency-limit.ts'

/** `page`: rows in one read. `low`: with fewer deliveries in memory, the next page is read. */
const FAST_CONSUMER = { page: 32, low: 8 }
/** Smaller, because the deliveries of a consumer that hangs stay in memory for long. */
const SLOW_CONSUMER = { page: 8, low: 1 }

/**
 * A lane's next first attempts, in the order of the events. About one page of rows is in memory. After a hint the next read
 * starts from the first row, because the announced delivery may come before those in memory: it was blocked until now, or its
 * commit became visible late.
 */
export class FirstAttempts {
  #waiting: DueDelivery[] = []
  #stale = true
  #isRereading = false
  /** The last `seq` read since the window was last read from the beginning. */
  #readUpTo = 0
  #mayHaveMore = true

  /** True if an earlier delivery than those in memory may be ready. */
  get stale(): boolean {
    return this.#stale || this.#isRereading
  }

  runsLow(speed: ConsumerSpeed): boolean {
    return this.#mayHaveMore && this.#waiting.length < (speed === 'fast' ? FAST_CONSUMER : SLOW_CONSUMER).low
  }

  invalidate(): void {
    this.#stale = true
  }

  /** Attempts were not made that come before those in memory. */
  forget(): void {
    this.#waiting = []
    this.#stale = true
  }

  failRead(): void {
    this.#stale = true
    this.#isRereading = false
  }

  peek(): DueDelivery | undefined {
    return this.#waiting[0]
  }

  shift(): void {
    this.#waiting.shift()
  }

  /**
   * The page to read next. A hint that comes after this call makes the window stale again.
   * @param inFlight first attempts in flight, which the page contains too
   */
  beginRead(inFlight: number, speed: ConsumerSpeed): { afterSeq: number; limit: number } {
    if (this.#stale) {
      this.#stale = false
      this.#isRereading = true
      this.#readUpTo = 0
    }
    return { afterSeq: this.#readUpTo, limit: (speed === 'fast' ? FAST_CONSUMER : SLOW_CONSUMER).page + inFlight }
  }

  /** @param claimed the rows that are claimed, or were while the page was read */
  endRead(
    query: { afterSeq: number; limit: number },
    page: readonly DueDelivery[],
    claimed: ReadonlySet<string>,
  ): void {
    if (query.afterSeq === 0) this.#waiting = []
    this.#isRereading = false
    for (const delivery of page) if (!claimed.has(delivery.id)) this.#waiting.push(delivery)
    this.#mayHaveMore = page.length === query.limit
    this.#readUpTo = page.at(-1)?.seq ?? this.#readUpTo
  }
}
