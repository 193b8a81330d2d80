import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { Sessions } from '../../../store/sessions/sessions.ts'

const WRONG_KEYS_PER_WINDOW = 10
/** Beyond this limit the least recently seen addresses are forgotten. */
const MAX_ADDRESSES = 10_000
/** Guesses waiting to be counted. Further ones are refused as if there had been too many. */
const MAX_UNCOUNTED = 100
const UNCOUNTED_WAIT_MS = 1_000

/**
 * Limits wrong keys by address. All nodes count in the store, each node one guess at a time, because guesses share commits
 * with other calls. A blocked address is also kept in memory, so that its further guesses do not reach the store.
 */
export class WrongKeys {
  readonly #counts: Pick<Sessions, 'countWrongKey'>
  /** The end of each blocked address's wait, on the monotonic clock. */
  readonly #waiting = new BoundedMap<string, number>(MAX_ADDRESSES)
  #uncounted = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(counts: Pick<Sessions, 'countWrongKey'>) {
    this.#counts = counts
  }

  /** @returns milliseconds until the address may guess again; 0 while it may */
  async count(address: string): Promise<number> {
    const known = this.#knownWaitMs(address)
    if (known > 0) return known
    if (this.#uncounted >= MAX_UNCOUNTED) return UNCOUNTED_WAIT_MS
    this.#uncounted += 1
    const counted = this.#last
      .then(() => this.#count(address))
      .finally(() => {
        this.#uncounted -= 1
      })
    this.#last = counted.catch(() => undefined)
    return counted
  }

  async #count(address: string): Promise<number> {
    const known = this.#knownWaitMs(address)
    if (known > 0) return known
    const { count, endsInMs } = await this.#counts.countWrongKey(address)
    return count > WRONG_KEYS_PER_WINDOW ? this.#remember(address, endsInMs) : 0
  }

  #knownWaitMs(address: string): number {
    return Math.max(0, (this.#waiting.get(address) ?? 0) - performance.now())
  }

  #remember(address: string, waitMs: number): number {
    this.#waiting.set(address, performance.now() + waitMs)
    return waitMs
  }
}
