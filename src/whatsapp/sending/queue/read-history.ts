/**
 * An overlapping read begins where the reads were this long ago. On PostgreSQL a wait for a lock ends after 10 s, and a commit
 * may wait for several. Only rows that are still queued are read again.
 */
const OVERLAP_MS = 60_000
/** At most two positions are kept of this time. */
const MARK_EVERY_MS = 1_000

/** How far the reads of a queue were during the last minute. It keeps at most two positions per second. */
export class ReadHistory {
  /** The oldest first. At most one is older than `OVERLAP_MS`. */
  readonly #marks: { at: number; seq: number }[] = []

  /** Rows up to `seq` have been read. Their numbers, and all lower ones, were assigned before `now` (`performance.now()`). */
  note(seq: number, now: number): void {
    const [last, secondLast] = [this.#marks.at(-1), this.#marks.at(-2)]
    const highest = Math.max(seq, last?.seq ?? 0)
    if (secondLast && now - secondLast.at < MARK_EVERY_MS) this.#marks.pop()
    this.#marks.push({ at: now, seq: highest })
    this.#forget(now)
  }

  /**
   * All numbers up to this one were assigned more than `OVERLAP_MS` ago, so their commits have ended. 0 if that is unknown,
   * because the reads began later.
   */
  settledTo(now: number): number {
    this.#forget(now)
    const oldest = this.#marks[0]
    return oldest && oldest.at <= now - OVERLAP_MS ? oldest.seq : 0
  }

  #forget(now: number): void {
    while (this.#marks[1] && this.#marks[1].at <= now - OVERLAP_MS) this.#marks.shift()
  }
}
