import type { Compilable } from 'kysely'
import { StoreUnavailable } from '../errors.ts'
import type { Backend, Session } from './backend.ts'
import type { RowsStatement, Statement } from './statement.ts'

/** Reads committed data. @throws StoreUnavailable if the database cannot be reached */
export class GuardedReader implements Session {
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

  async #guard<O>(rows: Promise<O[]>): Promise<O[]> {
    try {
      return await rows
    } catch (error) {
      if (this.#backend.classify(error) === 'unit') throw error
      throw new StoreUnavailable('The read failed.', { cause: error })
    }
  }
}
