import type { InstanceId } from '../../domain/ids.ts'
import { EventLoopBudget } from '../../kit/event-loop-budget.ts'

/** A window takes some milliseconds. During many concurrent searches, other calls run in between, and instances take turns. */
export const searchWindows = new EventLoopBudget(1)

/** Rows read before the search yields to the event loop. */
export const WINDOW = 5_000
/** The first window for rows that may be large. */
export const FEW = 16
/** After a window that took longer, the next one is as small as the first one. */
const SLOW_MS = 10

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
 * @param find finds the first `limit` rows that meet the condition in the slice, which has at most `among` rows
 * @param first the size of the first window; later ones are larger if the rows are read quickly
 */
export async function search<R>(
  instanceId: InstanceId,
  slice: Slice,
  limit: number,
  edge: (slice: Slice, distance: number) => Promise<string | null>,
  find: (slice: Slice, limit: number, among: number) => Promise<R[]>,
  first = WINDOW,
): Promise<R[]> {
  const found: R[] = []
  let window = first
  for (let { below } = slice; ; ) {
    await searchWindows.take(instanceId)
    const startedAt = performance.now()
    const end = await edge({ ...slice, below }, window)
    const rows = await find({ below, from: end ?? slice.from }, limit - found.length, window + 1)
    found.push(...rows)
    if (end === null || found.length >= limit) return found
    below = end
    window = performance.now() - startedAt < SLOW_MS ? Math.min(4 * window, WINDOW) : first
  }
}
