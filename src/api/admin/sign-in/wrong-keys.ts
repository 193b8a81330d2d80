import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { Sessions } from '../../../store/sessions/sessions.ts'

const WRONG_KEYS_PER_WINDOW = 10
/** Beyond this the addresses seen longest ago are forgotten. */
const MAX_ADDRESSES = 10_000
/** Guesses that wait to be counted. Who comes then has to wait as if he had guessed too often. */
const MAX_UNCOUNTED = 100
const UNCOUNTED_WAIT_MS = 1_000

/**
 * Throttles the addresses that wrong keys come from. All nodes count together, in the store, each one guess at a time:
 * guesses share its commits with the calls that have a key. An address that has to wait is remembered here as well, so
 * that further guesses from it cost the store nothing.
 */
export class WrongKeys {
  readonly #counts: Pick<Sessions, 'countWrongKey'>
  /** Until when an address has to wait, on the process's clock. */
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
