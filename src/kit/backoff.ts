/** Exponential backoff: `firstMs` without an earlier failure, twice as long after each failure, at most `longestMs`. */
export function backoffMs(earlierFailures: number, firstMs: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** earlierFailures, longestMs)
}
