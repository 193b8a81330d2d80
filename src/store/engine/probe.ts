import { randomBytes } from 'node:crypto'
import { StoreUnavailable } from '../errors.ts'
import type { Session } from './backend.ts'
import { type Operation, oneByOne } from './operation.ts'
import type { Statements } from './statement.ts'
import type { Writer } from './writer.ts'

const KEY = 'probe'
/** Random, because SQLite does not write a page whose content is unchanged. */
const PROBE_BYTES = 16
/** Larger than most commits. A full disk may refuse a large commit and still accept a small one. */
const PROBE_BYTES_AFTER_A_REFUSAL = 256 * 1024

/**
 * Checks whether the store accepts writes by writing a row and syncing it to disk. After a refused write, a large probe has
 * to succeed first.
 */
export class Probe {
  readonly #operation: Operation<Uint8Array, void>
  readonly #writer: Writer
  #afterFailure = false

  constructor({ db }: Statements, writer: Writer) {
    this.#writer = writer
    async function write(session: Session, value: Uint8Array): Promise<void> {
      await session.query(
        db
          .insertInto('meta')
          .values({ key: KEY, value })
          .onConflict(conflict => conflict.column('key').doUpdateSet({ value })),
      )
    }
    this.#operation = {
      ...oneByOne('ping', () => '', write),
      // All nodes write the same row. In a transaction, a node that freezes would keep it locked.
      async runAlone(session, values) {
        for (const value of values) await write(session, value)
        return []
      },
    }
  }

  async run(): Promise<void> {
    const isLarge = this.#afterFailure
    const value = randomBytes(isLarge ? PROBE_BYTES_AFTER_A_REFUSAL : PROBE_BYTES)
    try {
      await this.#writer.write(this.#operation, value)
    } catch (error) {
      this.noteFailure(error)
      throw error
    }
    if (isLarge) this.#afterFailure = false
  }

  /** Call it with the error of every failed write. */
  noteFailure(error: unknown): void {
    // Without a cause the write did not reach the database: the queue was full, or the store was closing.
    if (error instanceof StoreUnavailable && error.cause !== undefined) this.#afterFailure = true
  }
}
