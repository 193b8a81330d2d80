import { setImmediate } from 'node:timers/promises'

/** Rows looked at before other work gets its turn. */
export const WINDOW = 5_000

/** Rows in the order of their ids. */
export interface Slice {
  /** Exclusive. */
  below: string
  /** Inclusive. */
  from: string
}

/**
 * Finds rows, highest id first, by a condition that no index serves: window by window, so that a condition that few
 * rows meet never holds up what else the process does.
 *
 * @param edge the id of the row at this distance from the slice's upper end; null when the slice ends before
 * @param find the first `limit` rows of the slice that meet the condition
 */
export async function search<R>(
  slice: Slice,
  limit: number,
  edge: (slice: Slice, distance: number) => Promise<string | null>,
  find: (slice: Slice, limit: number) => Promise<R[]>,
): Promise<R[]> {
  const found: R[] = []
  for (let { below } = slice; ; ) {
    const end = await edge({ ...slice, below }, WINDOW)
    found.push(...(await find({ below, from: end ?? slice.from }, limit - found.length)))
    if (end === null || found.length >= limit) return found
    below = end
    await setImmediate()
  }
}
