import type { Compilable } from 'kysely'
import pg from 'pg'
import { StoreUnavailable } from '../../errors.ts'
import { type Backend, PostFailed, type Session, type Transaction } from '../backend.ts'
import { Parameter } from '../dialect.ts'
import type { StoreLogger } from '../logger.ts'
import type { RowsStatement, Statement } from '../statement.ts'
import { createReadingPool, createWritingPool, reach } from './pools.ts'

/** With two, a commit that waits for another node's lock does not block all others. */
const COMMITS_AT_ONCE = 2
/**
 * One more each for independent writes, for independent writes that may be undone, for writes that belong to no
 * instance, and for each `Operation.connection`.
 */
const WRITING_CONNECTIONS = COMMITS_AT_ONCE + 6
const READING_CONNECTIONS = 5

/** Reads use separate connections, so that a long list does not delay a write. */
export class PostgresBackend implements Backend {
  readonly reader: Session
  readonly autocommit: Session
  readonly commitsAtOnce = COMMITS_AT_ONCE
  readonly #writing: pg.Pool
  readonly #reading: pg.Pool

  constructor(url: string, logger: StoreLogger | undefined) {
    this.#writing = createWritingPool(url, WRITING_CONNECTIONS, logger)
    this.#reading = createReadingPool(url, READING_CONNECTIONS, logger)
    this.reader = new PostgresSession(this.#reading)
    this.autocommit = new PostgresSession(this.#writing)
  }

  async begin(lockTimeoutMs?: number): Promise<Transaction> {
    return new PostgresTransaction(await reach(this.#writing.connect()), lockTimeoutMs)
  }

  classify(error: unknown): 'unavailable' | 'conflict' | 'locked' | 'unit' {
    if (error instanceof StoreUnavailable) return 'unavailable'
    if (!(error instanceof pg.DatabaseError)) return 'unit'
    const code = error.code ?? ''
    if (CONFLICTS.has(code)) return 'conflict'
    if (code === LOCK_NOT_AVAILABLE) return 'locked'
    return UNAVAILABLE.test(code) ? 'unavailable' : 'unit'
  }

  async close(): Promise<void> {
    await Promise.all([this.#writing.end(), this.#reading.end()])
  }
}

/** Serialisation failure and deadlock (SQLSTATE). */
const CONFLICTS = new Set(['40001', '40P01'])
/** SQLSTATE of a lock that was not granted within `lock_timeout`. */
const LOCK_NOT_AVAILABLE = '55P03'
/** SQLSTATE of a write on a read-only server. */
const READ_ONLY = '25006'
/**
 * SQLSTATE classes: connection, refused login, missing database, resources, operator intervention (shutdown, timeout), system.
 * Codes: read-only transaction, idle-in-transaction timeout.
 */
const UNAVAILABLE = /^(08|28|3D|53|57|58)|^(25006|25P03)$/

class PostgresSession implements Session {
  protected broken = false
  /** The transaction's `begin`. No result is returned unless it succeeded. */
  protected begun: Promise<unknown> = Promise.resolve()
  readonly #connection: pg.Pool | pg.PoolClient

  constructor(connection: pg.Pool | pg.PoolClient) {
    this.#connection = connection
  }

  async query<O>(query: Compilable<O>): Promise<O[]> {
    const { sql, parameters } = query.compile()
    return this.#send<O>({ text: sql, values: parameters.map(storable) })
  }

  run<I extends object, O>(statement: Statement<I, O>, values: I): Promise<O[]> {
    const filled = statement.parameters.map(parameter =>
      storable(parameter instanceof Parameter ? values[parameter.name as keyof I] : parameter),
    )
    return this.#send<O>({ name: nameOf(statement), text: statement.sql, values: filled })
  }

  async each<I extends object, O>(statement: RowsStatement<I, O>, rows: readonly I[]): Promise<O[]> {
    if (rows.length === 0) return []
    // An array for each column.
    const columns = statement.parameters.map(parameter =>
      storable(parameter instanceof Parameter ? rows.map(row => row[parameter.name as keyof I]) : parameter),
    )
    return this.#send<O>({ name: nameOf(statement), text: statement.sql, values: columns })
  }

  async #send<O>(config: pg.QueryConfig): Promise<O[]> {
    try {
      const { rows } = await reach(this.#connection.query(config))
      await this.begun
      return rows as O[]
    } catch (error) {
      // After a failover, a new connection may reach the new primary.
      const isReadOnly = error instanceof pg.DatabaseError && error.code === READ_ONLY
      this.broken ||= isReadOnly || error instanceof StoreUnavailable
      throw this.causeOf(error)
    }
  }

  protected causeOf(error: unknown): unknown {
    return error
  }
}

/**
 * The connection is pipelined: statements are sent without waiting for earlier ones. `begin` is sent with the first statement,
 * and `commit` without waiting for posted statements.
 */
class PostgresTransaction extends PostgresSession implements Transaction {
  readonly #client: pg.PoolClient
  readonly #posted: Promise<unknown>[] = []
  /** The error of the first failed statement. It also makes all later statements fail. */
  #failure: unknown

  constructor(client: pg.PoolClient, lockTimeoutMs: number | undefined) {
    super(client)
    this.#client = client
    this.begun = this.#send(
      lockTimeoutMs === undefined ? 'begin' : `begin; set local lock_timeout = ${Math.round(lockTimeoutMs)}`,
    )
  }

  post<I extends object>(statement: RowsStatement<I, unknown>, rows: readonly I[]): void {
    const posted = this.each(statement, rows)
    posted.catch(() => undefined)
    this.#posted.push(posted)
  }

  protected override causeOf(error: unknown): unknown {
    this.#failure ??= error
    return this.#failure
  }

  async commit(isSynced = true): Promise<void> {
    const relaxed = isSynced ? null : this.#send('set local synchronous_commit = off')
    const committed = this.#send('commit')
    // If a posted statement failed, the server has answered the commit with a rollback.
    for (const posted of this.#posted) {
      await posted.catch(error => {
        throw error instanceof StoreUnavailable ? error : new PostFailed('A posted statement failed.', { cause: error })
      })
    }
    await this.begun
    await relaxed
    const { command } = await committed
    if (command !== 'COMMIT') throw new Error(`The server answered ${command} to the commit.`)
    this.#client.release()
  }

  async rollback(): Promise<void> {
    // A broken connection cannot roll back.
    const rolledBack =
      !this.broken &&
      (await this.#send('rollback').then(
        () => true,
        () => false,
      ))
    this.#client.release(!rolledBack)
  }

  #send(command: Command): Promise<pg.QueryResult> {
    const answer = reach(this.#client.query(command))
    answer.catch(() => {
      this.broken = true
    })
    return answer
  }
}

type Command =
  | 'begin'
  | `begin; set local lock_timeout = ${number}`
  | 'set local synchronous_commit = off'
  | 'commit'
  | 'rollback'

function nameOf(statement: { id: number }): string {
  return `pombal_${statement.id}`
}

/** PostgreSQL's text cannot contain U+0000, so it is replaced with U+FFFD, including in arrays. */
function storable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(storable)
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value
}
