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
  commit(): Promise<void>
  /** Never throws: a connection that cannot roll back is thrown away. */
  rollback(): Promise<void>
}

/** What the two databases do differently. */
export interface Backend {
  /** Reads what is committed. */
  readonly reader: Session
  /** How many writers may work side by side. */
  readonly writers: number
  begin(): Promise<Transaction>
  /** What an error of the driver means: `unavailable` concerns every unit, `conflict` goes away by repeating, `unit` is one unit's own. */
  classify(error: unknown): 'unavailable' | 'conflict' | 'unit'
  close(): Promise<void>
}
