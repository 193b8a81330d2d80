import type { SigningSecrets } from '../domain/instance.ts'
import type { Clock } from './clock.ts'

/** A rotation that no hint told of is seen after this time. */
const FRESH_MS = 1_000

/** An instance's signing secrets as they are now: read anew when a hint says so, and never older than 1 s. */
export class SecretsInForce {
  readonly #read: () => Promise<SigningSecrets>
  readonly #clock: Clock
  #reading: Promise<SigningSecrets> | null = null
  #freshUntil = Number.NEGATIVE_INFINITY

  constructor(read: () => Promise<SigningSecrets>, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  get(): Promise<SigningSecrets> {
    if (this.#reading && this.#clock.steady() < this.#freshUntil) return this.#reading
    const reading = this.#read()
    this.#reading = reading
    this.#freshUntil = this.#clock.steady() + FRESH_MS
    reading.catch(() => {
      if (this.#reading === reading) this.#reading = null
    })
    return reading
  }

  drop(): void {
    this.#reading = null
  }
}
