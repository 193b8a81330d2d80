import type { Compilable } from 'kysely'
import type { RowsStatement, Statement } from './statement.ts'

/** Runs queries on one connection or on a pool. */
export interface Session {
  /** Compiles and runs a query. For rare queries, and for those of many shapes. */
  query<O>(query: Compilable<O>): Promise<O[]>
  run<I extends object, O>(statement: Statement<I, O>, values: I): Promise<O[]>
  /** Runs the statement for all rows. The results are in no particular order. */
  each<I extends object, O>(statement: RowsStatement<I, O>, rows: readonly I[]): Promise<O[]>
}

/** A connection with an open transaction. */
export interface Transaction extends Session {
  /** Sends the statement without waiting for its result. Later statements run after it. If it fails, `commit` rejects. */
  post<I extends object>(statement: RowsStatement<I, unknown>, rows: readonly I[]): void
  /**
   * @param isSynced if false, the commit does not wait for the disk: a power failure may undo it, a killed process does not
   * @throws PostFailed if a posted statement failed; nothing is committed then
   */
  commit(isSynced?: boolean): Promise<void>
  /** Never throws: a connection that cannot roll back is discarded. */
  rollback(): Promise<void>
}

/** A posted statement failed. Its error is the `cause`. */
export class PostFailed extends Error {
  override readonly name = 'PostFailed'
}

/**
 * One database: connections, transactions, errors. The differences in SQL are in `Dialect`, those of table definitions
 * in `Flavour`.
 */
export interface Backend {
  /** Reads committed data, which a power failure may still undo until `untilSynced` resolves. */
  readonly reader: Session
  /**
   * Resolves when everything read so far is on disk, except commits with `isSynced = false`. Rejects if it cannot be
   * written. Absent if `reader` reads only data that is on disk.
   */
  untilSynced?(): Promise<void>
  /** Commits each statement by itself in one round trip. Null if this saves no round trips. */
  readonly autocommit: Session | null
  /** How many commits may run concurrently. */
  readonly commitsAtOnce: number
  /** @param lockTimeoutMs how long a statement waits for a lock of another transaction, if others can hold one; default 2 s */
  begin(lockTimeoutMs?: number): Promise<Transaction>
  /**
   * Classifies a driver error: `unavailable` affects every unit, `conflict` calls for a retry, `unit` is caused by one unit.
   * `locked`: a unit waited too long for a lock of another transaction.
   */
  classify(error: unknown): 'unavailable' | 'conflict' | 'locked' | 'unit'
  /** Removes deleted data from the database's files. Absent if the database does so by itself. */
  eraseTraces?(): Promise<void>
  close(): Promise<void>
}
