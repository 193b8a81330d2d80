/**
 * Rows whose numbers were assigned within this time may still be committed. On PostgreSQL a wait for a lock ends after 10 s, and a
 * commit may wait for several.
 */
const OVERLAP_MS = 60_000
/** Longer than the overlap, because a read may begin later than it was requested. */
const REMEMBERED_MS = 2 * OVERLAP_MS
/** At most two positions are kept for each interval of this length. */
const MARK_EVERY_MS = 1_000

/** How far the reads of a queue had come at each moment of the last two minutes, and which rows they found. */
export class ReadHistory {
  /** The oldest first. At most one is older than `REMEMBERED_MS`. */
  readonly #marks: { at: number; seq: number }[] = []
  /** The numbers of the rows that were read in this time, roughly the lowest first. */
  readonly #numbers = new Set<number>()

  /** These rows have been read. Their numbers, and all lower ones, were assigned before `now` (`performance.now()`). */
  note(rows: readonly { seq: number }[], now: number): void {
    const [last, secondLast] = [this.#marks.at(-1), this.#marks.at(-2)]
    const highest = Math.max(rows.at(-1)?.seq ?? 0, last?.seq ?? 0)
    if (secondLast && now - secondLast.at < MARK_EVERY_MS) this.#marks.pop()
    this.#marks.push({ at: now, seq: highest })
    while (this.#marks[1] && this.#marks[1].at <= now - REMEMBERED_MS) this.#marks.shift()
    const forgotten = this.#positionAt(now - REMEMBERED_MS)
    for (const { seq } of rows) if (seq > forgotten) this.#numbers.add(seq)
    for (const seq of this.#numbers) {
      if (seq > forgotten) break
      this.#numbers.delete(seq)
    }
  }

  /** @returns the lowest of these numbers that no read has found in the last two minutes, or null */
  firstUnread(numbers: readonly number[]): number | null {
    return numbers.find(seq => !this.#numbers.has(seq)) ?? null
  }

  /**
   * All numbers up to this one were assigned more than `OVERLAP_MS` ago, so their commits have ended. 0 if that is unknown,
   * because the reads began later.
   */
  settledTo(now: number): number {
    return this.#positionAt(now - OVERLAP_MS)
  }

  #positionAt(time: number): number {
    return this.#marks.findLast(({ at }) => at <= time)?.seq ?? 0
  }
}
