import type { Compilable } from 'kysely'
import { StoreUnavailable } from '../errors.ts'
import type { Backend, Session } from './backend.ts'
import type { RowsStatement, Statement } from './statement.ts'

/** Reads committed data. */
export interface Reader extends Session {
  /** Resolves when everything read so far survives a power failure. For answers that others rely on, such as cursors. */
  untilSynced(): Promise<void>
}

/** @throws StoreUnavailable if the database cannot be reached */
export class GuardedReader implements Reader {
  readonly #backend: Backend

  constructor(backend: Backend) {
    this.#backend = backend
  }

  query<O>(query: Compilable<O>): Promise<O[]> {
    return this.#guard(this.#backend.reader.query(query))
  }

  run<I extends object, O>(statement: Statement<I, O>, values: I): Promise<O[]> {
    return this.#guard(this.#backend.reader.run(statement, values))
  }

  each<I extends object, O>(statement: RowsStatement<I, O>, rows: readonly I[]): Promise<O[]> {
    return this.#guard(this.#backend.reader.each(statement, rows))
  }

  async untilSynced(): Promise<void> {
    await this.#guard(this.#backend.untilSynced?.() ?? Promise.resolve())
  }

  async #guard<T>(read: Promise<T>): Promise<T> {
    try {
      return await read
    } catch (error) {
      if (this.#backend.classify(error) === 'unit') throw error
      throw new StoreUnavailable('The read failed.', { cause: error })
    }
  }
}
