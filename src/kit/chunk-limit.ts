/** Any number of chunks of this size and more is accepted. */
const SMALL_BYTES = 64
/** This many chunks may be smaller. */
const MAX_SMALL = 1_000

/** Detects data that arrives in so many small chunks that handling the chunks costs more than the data. */
export class ChunkLimit {
  #chunks = 0
  #bytes = 0

  /** Call for each chunk. @returns true beyond the limit */
  exceeds(bytes: number): boolean {
    this.#chunks += 1
    this.#bytes += bytes
    return this.#chunks > MAX_SMALL && this.#bytes < this.#chunks * SMALL_BYTES
  }
}
