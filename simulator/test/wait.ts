const POLL_MS = 5
/** A generous limit for a busy machine, not a performance requirement. */
const WITHIN_MS = 120_000

/** Polls until the condition returns something other than false, null or undefined, and returns that. */
export async function until<T>(condition: () => T | Promise<T>, what = condition.toString()): Promise<NonNullable<T>> {
  const end = performance.now() + WITHIN_MS
  for (;;) {
    const value = await condition()
    if (value !== false && value !== null && value !== undefined) return value
    if (performance.now() > end) throw new Error(`timed out waiting for ${what}`)
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}
