const POLL_MS = 5
/** Nothing is measured by it: long enough for a machine that has much else to do. */
const WITHIN_MS = 120_000

/** Waits until the condition gives something other than false, null or undefined, and gives that. */
export async function until<T>(condition: () => T | Promise<T>, what = condition.toString()): Promise<NonNullable<T>> {
  const end = Date.now() + WITHIN_MS
  for (;;) {
    const value = await condition()
    if (value !== false && value !== null && value !== undefined) return value
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`)
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}
