/** Runs `task` once, after `delayMs`. @returns a function that cancels it */
type After = (delayMs: number, task: () => void) => () => void

const afterMs: After = (delayMs, task) => {
  const timer = setTimeout(task, delayMs)
  return () => clearTimeout(timer)
}

/**
 * Resolves with the result of `work`. After the deadline, `work` continues and its result is ignored.
 * @throws Error after `limitMs`; otherwise the error of `work`
 */
export async function withDeadline<T>(limitMs: number, work: Promise<T>, after = afterMs): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const cancel = after(limitMs, () => reject(new Error(`No answer within ${limitMs} ms.`)))
  return Promise.race([work, promise]).finally(cancel)
}

/** Resolves when `work` has settled, after `limitMs` at the latest. Never rejects. */
export async function waitAtMost(
  limitMs: number,
  work: Promise<unknown> | null | undefined,
  after?: After,
): Promise<void> {
  if (work) await withDeadline(limitMs, work, after).catch(() => undefined)
}
