import { closeSync, fdatasync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import Sqlite from 'better-sqlite3'
import type { Compilable } from 'kysely'
import { backoffMs } from '../../../kit/backoff.ts'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { Backend, Session, Transaction } from '../backend.ts'
import { fill, type RowsStatement, type Statement } from '../statement.ts'
import { syncFolder } from '../sync-to-disk.ts'

/**
 * Of a database that is made anew. A commit writes whole pages into the log, most of them for one new row each: with SQLite's
 * own 4 KiB it writes, sums and syncs nearly twice as much.
 */
const PAGE_BYTES = 2_048
/**
 * Size of the log at which it is written back into the database. A page that changes often is written back once for all:
 * with a quarter of it, accepting took a fifth longer.
 */
const LOG_BYTES = 64 * 1024 * 1024
/** KiB of pages kept in memory by each connection; beyond them the system keeps the file. */
const CACHE_KIB = 16_384
/** How long a lock that another process holds is waited for. */
const BUSY_TIMEOUT_MS = 5_000
const FIRST_PAUSE_MS = 5
const LONGEST_PAUSE_MS = 50
/**
 * Prepared statements kept by each connection, some 16 KiB each. One that is not kept takes that much, outside the heap,
 * until the next collection of all garbage, which knows nothing of it.
 */
const PREPARED_STATEMENTS = 256

/** Opens the file as every connection to it must be: write-ahead log, synced at every commit, what is deleted overwritten. */
export function openSqlite(path: string, options: { readonly?: boolean } = {}): Sqlite.Database {
  const db = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS, ...options })
  if (!options.readonly) {
    db.pragma(`page_size = ${PAGE_BYTES}`)
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = FULL')
    db.pragma('secure_delete = ON')
    const pageBytes = Number(db.pragma('page_size', { simple: true }))
    db.pragma(`wal_autocheckpoint = ${Math.floor(LOG_BYTES / pageBytes)}`)
  }
  db.pragma(`cache_size = -${CACHE_KIB}`)
  return db
}

/** Brings a file's data to the disk; by default the system's `fdatasync`, in a thread of its own. */
export type SyncFile = (descriptor: number) => Promise<void>

/**
 * One connection that writes, and one that reads, so that a long list does not hold a write up.
 *
 * A commit is synced as with `synchronous = FULL`, by the same call on the same file, but outside of the event loop:
 * SQLite appends to the log (`NORMAL`), then we sync it, then the commit resolves. SQLite itself still syncs the log
 * before it writes it back into the database, so that the file is consistent at every moment.
 */
export class SqliteBackend implements Backend {
  readonly reader: Session
  readonly autocommit = null
  readonly commitsAtOnce = 1
  readonly #writing: Sqlite.Database
  readonly #reading: Sqlite.Database
  readonly #transaction: SqliteTransaction
  readonly #log: number
  readonly #path: string

  constructor(path: string, syncFile: SyncFile = promisify(fdatasync)) {
    this.#path = path
    this.#writing = openSqlite(path)
    this.#reading = openSqlite(path, { readonly: true })
    for (const db of [this.#writing, this.#reading]) db.pragma('busy_timeout = 0')
    this.reader = new SqliteSession(this.#reading)
    this.#log = openLog(this.#writing, path)
    this.#writing.pragma('synchronous = NORMAL')
    this.#transaction = new SqliteTransaction(this.#writing, () => syncFile(this.#log))
  }

  async begin(): Promise<Transaction> {
    await retryWhileBusy(() => this.#transaction.begin())
    return this.#transaction
  }

  async eraseTraces(): Promise<void> {
    const db = new Sqlite(this.#path, { timeout: 0 })
    try {
      await retryWhileBusy(() => truncateLog(db))
    } finally {
      db.close()
    }
  }

  classify(error: unknown): 'unavailable' | 'unit' {
    if (!(error instanceof Sqlite.SqliteError)) return this.#writing.open ? 'unit' : 'unavailable'
    return /^SQLITE_(FULL|IOERR|READONLY|BUSY|LOCKED|CANTOPEN|CORRUPT|NOTADB|NOMEM|PERM|AUTH)/.test(error.code)
      ? 'unavailable'
      : 'unit'
  }

  async close(): Promise<void> {
    this.#reading.close()
    this.#writing.close()
    closeSync(this.#log)
  }
}

/** Tries again while another process holds a lock: SQLite's own waiting would stop the event loop. */
async function retryWhileBusy<T>(step: () => T): Promise<T> {
  const giveUpAt = performance.now() + BUSY_TIMEOUT_MS
  for (let failures = 0; ; failures += 1) {
    try {
      return step()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= giveUpAt) throw error
    }
    await sleep(backoffMs(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS))
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')
}

/** The log keeps pages as they were until it is written over. @throws SqliteError SQLITE_BUSY while others read or write */
function truncateLog(db: Sqlite.Database): void {
  const [outcome] = db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
  if (outcome?.busy !== 0) throw new Sqlite.SqliteError('The log is in use.', 'SQLITE_BUSY')
}

/** The write-ahead log, which is there for as long as a connection is open, and stands in its folder for good. */
function openLog(db: Sqlite.Database, path: string): number {
  // A write that changes nothing, so that there is a log to open.
  db.exec(`pragma user_version = ${db.pragma('user_version', { simple: true })}`)
  syncFolder(dirname(path))
  return openSync(`${path}-wal`, 'r+')
}

class SqliteSession implements Session {
  protected readonly db: Sqlite.Database
  readonly #prepared = new BoundedMap<string, Sqlite.Statement>(PREPARED_STATEMENTS)

  constructor(db: Sqlite.Database) {
    this.db = db
  }

  async query<O>(query: Compilable<O>): Promise<O[]> {
    const { sql, parameters } = query.compile()
    return retryWhileBusy(() => execute<O>(this.#prepare(sql), parameters as unknown[]))
  }

  async run<I extends object, O>(statement: Statement<I, O>, values: I): Promise<O[]> {
    return retryWhileBusy(() => execute<O>(this.#prepare(statement.sql), fill(statement, values)))
  }

  async each<I extends object, O>(statement: RowsStatement<I, O>, rows: readonly I[]): Promise<O[]> {
    return retryWhileBusy(() => this.executeAll(statement, rows))
  }

  protected executeAll<I extends object, O>(statement: RowsStatement<I, O>, rows: readonly I[]): O[] {
    const prepared = this.#prepare(statement.sql)
    const answers: O[] = []
    for (const row of rows) {
      for (const answer of execute<O>(prepared, fill(statement, row))) answers.push(answer)
    }
    return answers
  }

  /** Each use makes a statement the newest, so the one unused for longest is dropped first. */
  #prepare(sql: string): Sqlite.Statement {
    const prepared = this.#prepared.get(sql) ?? this.db.prepare(sql)
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

class SqliteTransaction extends SqliteSession implements Transaction {
  readonly #begin: Sqlite.Statement
  readonly #commit: Sqlite.Statement
  readonly #sync: () => Promise<void>

  constructor(db: Sqlite.Database, sync: () => Promise<void>) {
    super(db)
    this.#sync = sync
    this.#begin = db.prepare('begin immediate')
    this.#commit = db.prepare('commit')
  }

  begin(): void {
    this.#begin.run()
  }

  /** It has run when this returns: an error is thrown here. */
  post<I extends object>(statement: RowsStatement<I, unknown>, rows: readonly I[]): void {
    this.executeAll(statement, rows)
  }

  async commit(): Promise<void> {
    this.#commit.run()
    await this.#sync()
  }

  async rollback(): Promise<void> {
    // A full disk may have rolled back by itself.
    if (this.db.open && this.db.inTransaction) this.db.exec('rollback')
  }
}

function execute<O>(statement: Sqlite.Statement, parameters: unknown[]): O[] {
  if (statement.reader) return statement.all(parameters) as O[]
  statement.run(parameters)
  return []
}
