/**
 * Rows with numbers from this time may be committed late. On PostgreSQL a wait for a lock ends after 10 s, and a commit may wait for
 * several.
 */
const OVERLAP_MS = 60_000
/** At most two positions are kept for each interval of this length. */
const MARK_EVERY_MS = 1_000

/** How far the reads of a queue had come at each moment of the last minute, and which rows they found. */
export class ReadHistory {
  /** The oldest first. At most one is older than `OVERLAP_MS`. */
  readonly #marks: { at: number; seq: number }[] = []
  /** The numbers of the rows that were read, roughly the lowest first. Those of settled rows are forgotten. */
  readonly #numbers = new Set<number>()

  /** These rows have been read. Their numbers, and all lower ones, were assigned before `now` (`performance.now()`). */
  note(rows: readonly { seq: number }[], now: number): void {
    const [last, secondLast] = [this.#marks.at(-1), this.#marks.at(-2)]
    const highest = Math.max(rows.at(-1)?.seq ?? 0, last?.seq ?? 0)
    if (secondLast && now - secondLast.at < MARK_EVERY_MS) this.#marks.pop()
    this.#marks.push({ at: now, seq: highest })
    const settled = this.settledTo(now)
    for (const { seq } of rows) if (seq > settled) this.#numbers.add(seq)
    for (const seq of this.#numbers) {
      if (seq > settled) break
      this.#numbers.delete(seq)
    }
  }

  /** @returns the lowest of these numbers that no read has found, or null */
  firstUnread(numbers: readonly number[]): number | null {
    const unread = numbers.filter(seq => !this.#numbers.has(seq))
    return unread.length > 0 ? Math.min(...unread) : null
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
