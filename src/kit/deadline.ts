/**
 * Resolves with the result of `work`. It continues after the deadline, and a late result is ignored.
 * @throws Error after `limitMs`; otherwise the error of `work`
 */
export async function withDeadline<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`No answer within ${limitMs} ms.`)), limitMs)
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}

/** Resolves when `work` has settled, after `limitMs` at the latest. Never rejects. */
export async function waitAtMost(limitMs: number, work: Promise<unknown> | null | undefined): Promise<void> {
  if (work) await withDeadline(limitMs, work).catch(() => undefined)
}
