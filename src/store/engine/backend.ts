import type { Compilable } from 'kysely'
import type { RowsStatement, Statement } from './statement.ts'

/** Runs queries on one connection, or on whichever is free. */
export interface Session {
  /** Runs a query built on the spot: for what is rare or has many shapes. */
  query<O>(query: Compilable<O>): Promise<O[]>
  run<I extends object, O>(statement: Statement<I, O>, values: I): Promise<O[]>
  /** The answers to all rows, in no order. */
  each<I extends object, O>(statement: RowsStatement<I, O>, rows: readonly I[]): Promise<O[]>
}

/** A connection that holds a transaction. */
export interface Transaction extends Session {
  /** Runs the statement for all rows without waiting for it: what is run later runs after it. If it fails, what is awaited next does. */
  post<I extends object>(statement: RowsStatement<I, unknown>, rows: readonly I[]): void
  /** @throws PostFailed, and nothing is committed */
  commit(): Promise<void>
  /** Never throws: a connection that cannot roll back is thrown away. */
  rollback(): Promise<void>
}

/** A posted statement failed; its error is the `cause`. */
export class PostFailed extends Error {
  override readonly name = 'PostFailed'
}

/** What the two databases do differently. */
export interface Backend {
  /** Reads what is committed. */
  readonly reader: Session
  /** Commits every statement by itself, in one round trip; null where a transaction costs none. */
  readonly autocommit: Session | null
  /** How many commits may run side by side. */
  readonly commitsAtOnce: number
  begin(): Promise<Transaction>
  /** What an error of the driver means: `unavailable` concerns every unit, `conflict` goes away by repeating, `unit` is one unit's own. */
  classify(error: unknown): 'unavailable' | 'conflict' | 'unit'
  /** Takes what was deleted out of the files too; absent where the database does so by itself in time. */
  eraseTraces?(): Promise<void>
  close(): Promise<void>
}
