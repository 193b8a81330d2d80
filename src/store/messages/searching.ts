import { setImmediate } from 'node:timers/promises'

/** Rows read before the search yields to the event loop. */
export const WINDOW = 5_000

/** A range of rows in the order of their IDs. */
export interface Slice {
  /** Exclusive. */
  below: string
  /** Inclusive. */
  from: string
}

/**
 * Finds rows by a condition without an index, highest ID first. It reads window by window, so that a rare condition does not
 * block the process.
 *
 * @param edge finds the ID of the row at this distance from the slice's upper end; null if the slice is shorter
 * @param find finds the first `limit` rows of the slice that meet the condition
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
