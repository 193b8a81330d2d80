/** Exponential backoff: `firstMs` after no earlier failure, twice as long after each one, `longestMs` at most. */
export function backoffMs(earlierFailures: number, firstMs: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** earlierFailures, longestMs)
}
