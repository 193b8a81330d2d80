/** Any number of chunks is accepted if they are at least this large on average. */
const SMALL_BYTES = 64
/** Up to this many chunks may be smaller. */
const MAX_SMALL = 1_000

/** Whether data arrives in so many small chunks that handling the chunks costs more than the data. */
export function areChunksTooSmall(count: number, bytes: number): boolean {
  return count > MAX_SMALL && bytes < count * SMALL_BYTES
}
