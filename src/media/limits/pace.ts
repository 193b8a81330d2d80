import { Refusal } from '../../domain/refusal.ts'

const WINDOW_MS = 30_000
/** 10 KB/s. */
const LEAST_BYTES_PER_MS = 10

/**
 * Passes bytes on. Refuses an upload if fewer than 10 KB/s arrive in 30 s of waiting; the time that the reader takes
 * does not count. At the end, it ends the iteration of the source. This must not close the source itself, because the
 * caller of a refused upload still gets a response.
 * @throws Refusal if the upload is too slow, or if the source fails
 */
export async function* refuseSlow(source: AsyncIterable<Uint8Array>, windowMs = WINDOW_MS): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  let waitedMs = 0
  let arrived = 0
  let asked = iterator.next()
  try {
    for (;;) {
      const waitingSince = performance.now()
      const next = await settleWithin(asked, windowMs - waitedMs)
      waitedMs += performance.now() - waitingSince
      if (next?.done) return
      arrived += next?.value.length ?? 0
      if (next === null || waitedMs >= windowMs) {
        if (arrived < windowMs * LEAST_BYTES_PER_MS) throw new Refusal('request_timeout', 'The upload is too slow.')
        waitedMs = 0
        arrived = 0
      }
      if (next === null) continue
      yield next.value
      asked = iterator.next()
    }
  } finally {
    // Not awaited: `return` waits for the pending read, which may never end.
    void iterator.return?.().catch(() => undefined)
  }
}

/** Null after `limitMs`. */
async function settleWithin<T>(work: Promise<T>, limitMs: number): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), Math.max(0, limitMs))
  try {
    return await Promise.race([work, promise])
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw new Refusal('request_timeout', `The upload ended early: ${(error as Error).message}`)
  } finally {
    clearTimeout(timer)
  }
}
