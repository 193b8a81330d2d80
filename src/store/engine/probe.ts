import { randomBytes } from 'node:crypto'
import { StoreUnavailable } from '../errors.ts'
import { type Operation, oneByOne } from './operation.ts'
import type { Statements } from './statement.ts'

const KEY = 'probe'
/** Never the same twice: SQLite writes no page whose content stays as it is. */
const PROBE_BYTES = 16
/** More than most commits write. A disk that refused a large commit may still have room for a small one. */
const PROBE_BYTES_AFTER_A_REFUSAL = 256 * 1024

/**
 * Finds out whether the store takes writes by writing a row and bringing it to the disk. Once a write was refused, small
 * probes prove nothing: a large one has to succeed first.
 */
export class Probe {
  readonly #operation: Operation<Uint8Array, void>
  #afterFailure = false

  constructor({ db }: Statements) {
    this.#operation = oneByOne(
      'ping',
      () => '',
      async (tx, value) => {
        await tx.query(
          db
            .insertInto('meta')
            .values({ key: KEY, value })
            .onConflict(conflict => conflict.column('key').doUpdateSet({ value })),
        )
      },
    )
  }

  /** @param write resolves after the commit */
  async run(write: (operation: Operation<Uint8Array, void>, value: Uint8Array) => Promise<void>): Promise<void> {
    const isLarge = this.#afterFailure
    const value = randomBytes(isLarge ? PROBE_BYTES_AFTER_A_REFUSAL : PROBE_BYTES)
    try {
      await write(this.#operation, value)
    } catch (error) {
      this.noteFailure(error)
      throw error
    }
    if (isLarge) this.#afterFailure = false
  }

  /** To be called with the error of every write. */
  noteFailure(error: unknown): void {
    // Without a cause the database was not asked: too many writes waited, or the store was closing.
    if (error instanceof StoreUnavailable && error.cause !== undefined) this.#afterFailure = true
  }
}
