import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from './errors.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/**
 * Repeats a write while the store is away, for `limitMs` at most. Safe only for what the store takes twice without
 * harm, since the outcome of a failed write is unknown.
 * @throws what `work` threw, once the time is up, `signal` is aborted, or it is anything but `StoreUnavailable`
 */
export async function untilStored<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  limitMs = Number.POSITIVE_INFINITY,
): Promise<T> {
  const startedAt = performance.now()
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await work()
    } catch (error) {
      const late = performance.now() - startedAt >= limitMs
      if (!(error instanceof StoreUnavailable) || signal.aborted || late) throw error
      await sleep(pauseMs, undefined, { signal }).catch(() => {
        throw error
      })
    }
  }
}

/** Resolves when `work` has settled, after `limitMs` at the latest. */
export async function within(limitMs: number, work: Promise<unknown> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise(resolve => {
    timer = setTimeout(resolve, limitMs)
  })
  await Promise.race([work?.catch(() => undefined), limit])
  clearTimeout(timer)
}
