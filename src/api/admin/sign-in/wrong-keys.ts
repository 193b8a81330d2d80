import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { Sessions, WrongKeyWindow } from '../../../store/sessions/sessions.ts'

/** Beyond this limit the entries blocked longest ago are forgotten. */
const MAX_BLOCKED = 10_000
/** Guesses waiting to be counted. Further ones are refused as if there had been too many. */
const MAX_UNCOUNTED = 100
const UNCOUNTED_WAIT_MS = 1_000

/** How many wrong keys are allowed in a window for one `key`, such as a network or a name. */
export interface Limit extends WrongKeyWindow {
  atMost: number
}

/**
 * Counts wrong keys against limits. All nodes count in the store, each node one guess at a time, because guesses share commits
 * with other calls. An exceeded limit is also kept in memory, so that further guesses do not reach
 * the store.
 */
export class WrongKeys {
  readonly #counts: Pick<Sessions, 'countWrongKey' | 'uncountWrongKey'>
  /** The end of each wait, on the monotonic clock. */
  readonly #waiting = new BoundedMap<string, number>(MAX_BLOCKED)
  #uncounted = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(counts: Pick<Sessions, 'countWrongKey' | 'uncountWrongKey'>) {
    this.#counts = counts
  }

  /** @returns milliseconds until the caller may guess again; 0 while all limits allow it */
  async count(limits: readonly Limit[]): Promise<number> {
    const known = this.#knownWaitMs(limits)
    if (known > 0) return known
    if (this.#uncounted >= MAX_UNCOUNTED) return UNCOUNTED_WAIT_MS
    this.#uncounted += 1
    const counted = this.#last
      .then(() => this.#count(limits))
      .finally(() => {
        this.#uncounted -= 1
      })
    this.#last = counted.catch(() => undefined)
    return counted
  }

  /** The key that was counted was right, so it uses up no limit. */
  async uncount(limits: readonly Limit[]): Promise<void> {
    for (const { key } of limits) this.#waiting.delete(key)
    await this.#counts.uncountWrongKey(limits)
  }

  /** A check that fails, as when the service is busy, has not found out whether the key is wrong: it uses up no limit. */
  async unlessFailed<T>(limits: readonly Limit[], check: Promise<T>): Promise<T> {
    try {
      return await check
    } catch (error) {
      await this.uncount(limits)
      throw error
    }
  }

  async #count(limits: readonly Limit[]): Promise<number> {
    const known = this.#knownWaitMs(limits)
    if (known > 0) return known
    const counts = await this.#counts.countWrongKey(limits)
    for (const [index, { key, atMost }] of limits.entries()) {
      const { count, endsInMs } = counts[index]!
      if (count > atMost) this.#waiting.set(key, performance.now() + endsInMs)
    }
    return this.#knownWaitMs(limits)
  }

  #knownWaitMs(limits: readonly Limit[]): number {
    return Math.max(0, ...limits.map(({ key }) => (this.#waiting.get(key) ?? 0) - performance.now()))
  }
}
