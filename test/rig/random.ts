/** Reproducible random numbers (mulberry32). */
export class Random {
  #state: number

  /** @param seed a 32-bit integer */
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 ≤ x < 1 */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least)
  }

  /** A whole number, `least` ≤ n ≤ `most`. */
  integer(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1))
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[this.integer(0, from.length - 1)] as T
  }

  /** A separate sequence that does not depend on later use of this one. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 2 ** 32))
  }
}

export function newSeed(): number {
  return Math.floor(Math.random() * 2 ** 31)
}
