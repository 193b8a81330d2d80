const WINDOW_MS = 60_000
const WRONG_KEYS_PER_WINDOW = 10
/** Beyond this the addresses seen longest ago are forgotten. */
const MAX_ADDRESSES = 10_000

/** Counts the wrong keys of an address in windows of a minute. In memory, bounded. */
export class WrongKeys {
  readonly #byAddress = new Map<string, { count: number; endsAt: number }>()

  /** @returns milliseconds until the address may guess again; 0 while it may */
  count(address: string, now: number): number {
    const known = this.#byAddress.get(address)
    const window = known && known.endsAt > now ? known : { count: 0, endsAt: now + WINDOW_MS }
    window.count += 1
    this.#byAddress.delete(address)
    this.#byAddress.set(address, window)
    if (this.#byAddress.size > MAX_ADDRESSES) this.#forgetOldest()
    return window.count > WRONG_KEYS_PER_WINDOW ? window.endsAt - now : 0
  }

  /** @returns milliseconds until the address may guess again; 0 while it may. Counts nothing. */
  waitMs(address: string, now: number): number {
    const known = this.#byAddress.get(address)
    return known && known.endsAt > now && known.count >= WRONG_KEYS_PER_WINDOW ? known.endsAt - now : 0
  }

  #forgetOldest(): void {
    for (const address of this.#byAddress.keys()) {
      this.#byAddress.delete(address)
      return
    }
  }
}
