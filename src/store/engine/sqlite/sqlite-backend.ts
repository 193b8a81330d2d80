import { closeSync, fdatasync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import Sqlite from 'better-sqlite3'
import type { Compilable } from 'kysely'
import { backoffMs } from '../../../kit/backoff.ts'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { fold } from '../../../kit/fold.ts'
import { StoreUnavailable } from '../../errors.ts'
import type { Backend, Session, Transaction } from '../backend.ts'
import { Parameter } from '../dialect.ts'
import type { RowsStatement, Statement } from '../statement.ts'
import { syncFolder } from '../sync-to-disk.ts'
import { LogCheckpoints } from './log-checkpoints.ts'

/**
 * The page size of a new database. A commit writes whole pages to the log, most of them for a single new row. With SQLite's
 * default of 4 KiB, it would write, checksum and sync nearly twice as much.
 */
const PAGE_BYTES = 2_048
/**
 * The size of the log at which a checkpoint writes it back into the database. With a large log, a page that changes
 * often is written back only once: with a quarter of this size, accepting took a fifth longer.
 */
const LOG_BYTES = 64 * 1024 * 1024
/**
 * If the log is this many times larger, checkpoints fail or another process reads an old state. SQLite itself then also
 * tries to write it back.
 */
const AUTOMATIC_AT = 4
/** The page cache of each connection. Other pages are in the operating system's file cache. */
const CACHE_KIB = 16_384
/** How long to wait for a lock of another process. */
const BUSY_TIMEOUT_MS = 5_000
/**
 * How soon a commit with `isSynced = false` is synced. Otherwise the sync of the next commit would have to write many
 * such commits to disk.
 */
const SYNC_LATER_MS = 10
const FIRST_PAUSE_MS = 5
const LONGEST_PAUSE_MS = 50
/**
 * The size of each connection's cache of prepared statements, about 16 KiB each. An evicted statement keeps its memory, which
 * is outside the heap, until the next full garbage collection.
 */
const PREPARED_STATEMENTS = 256

/** Opens the database with the settings of every connection: write-ahead log, sync at every commit, deleted data overwritten. */
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

/** Syncs a file to disk; by default `fdatasync` in a worker thread of libuv. */
export type SyncFile = (descriptor: number) => Promise<void>

/**
 * Uses one connection for writes and one for reads.
 *
 * A commit is synced as with `synchronous = FULL`, by the same call on the same file, but off the event loop: SQLite
 * appends to the log (`NORMAL`), then `SyncFile` syncs it, then the commit resolves. A commit with `isSynced = false`
 * resolves immediately, and is synced a little later. SQLite still syncs the log before a checkpoint, so the database
 * is always consistent.
 *
 * A failed sync may leave a gap in the log on disk, although the log can be read. After a power cut SQLite would end at the gap and
 * lose all later commits. So no commit begins until the log is written again, synced, written back and empty.
 */
export class SqliteBackend implements Backend {
  readonly reader: Session
  readonly autocommit = null
  readonly commitsAtOnce = 1
  readonly #writing: Sqlite.Database
  readonly #reading: Sqlite.Database
  readonly #begin: Sqlite.Statement
  readonly #transaction: SqliteTransaction
  readonly #log: number
  /** The log's index, which all connections share. Open for as long as they are: closing it would release SQLite's locks. */
  readonly #index: number
  readonly #checkpoints: LogCheckpoints
  readonly #syncLog: () => Promise<void>
  /** The sync of the newest commit that waits for the disk. */
  #sync: Promise<unknown> = Promise.resolve()
  /**
   * The syncs of commits with `isSynced = false`. If one fails, a commit that has begun and waits for the disk fails
   * with it.
   */
  #laterSyncs: Promise<unknown> = Promise.resolve()
  #laterTimer: NodeJS.Timeout | null = null
  /** A sync failed. */
  #mayHaveGap = false

  constructor(path: string, syncFile: SyncFile = promisify(fdatasync), logBytes = LOG_BYTES) {
    this.#writing = openSqlite(path)
    this.#reading = openSqlite(path, { readonly: true })
    for (const db of [this.#writing, this.#reading]) db.pragma('busy_timeout = 0')
    this.#reading.function('fold', { deterministic: true }, text => fold(String(text)))
    this.reader = new SqliteSession(this.#reading)
    this.#log = openLog(this.#writing, path)
    this.#index = openSync(`${path}-shm`, 'r')
    this.#writing.pragma('synchronous = NORMAL')
    this.#begin = this.#writing.prepare('begin immediate')
    const pageBytes = Number(this.#writing.pragma('page_size', { simple: true }))
    this.#writing.pragma(`wal_autocheckpoint = ${AUTOMATIC_AT * Math.floor(logBytes / pageBytes)}`)
    this.#checkpoints = new LogCheckpoints({ path, log: this.#log, index: this.#index, pageBytes, logBytes })
    this.#syncLog = () =>
      syncFile(this.#log).catch(error => {
        this.#mayHaveGap = true
        throw error
      })
    const commit = this.#writing.prepare('commit')
    this.#transaction = new SqliteTransaction(this.#writing, async (isSynced = true) => {
      commit.run()
      if (!isSynced) return this.#syncLater()
      const later = this.#laterSyncs
      this.#laterSyncs = Promise.resolve()
      this.#sync = Promise.all([later, this.#syncLog()])
      await this.#sync
      // Another sync that overlapped with this one has failed.
      if (this.#mayHaveGap) throw new Error('The log could not be synced.')
    })
  }

  #syncLater(): void {
    this.#laterTimer ??= setTimeout(() => {
      this.#laterTimer = null
      this.#laterSyncs = Promise.all([this.#laterSyncs, this.#syncLog()])
      this.#laterSyncs.catch(() => undefined)
    }, SYNC_LATER_MS)
  }

  async untilSynced(): Promise<void> {
    await this.#sync
  }

  async begin(): Promise<Transaction> {
    if (this.#mayHaveGap) await this.#closeGap()
    await this.#checkpoints.beforeWrite()
    try {
      this.#begin.run()
    } catch (error) {
      if (!isBusy(error)) throw error
      await retryWhileBusy(() => this.#begin.run())
    }
    return this.#transaction
  }

  /**
   * The log is written again first. Otherwise a power cut in the middle of the checkpoint could leave half of a commit in the database
   * and none of it in the log. A kill at any step leaves a log that can be read, and the next start writes it back.
   * @throws StoreUnavailable
   */
  async #closeGap(): Promise<void> {
    try {
      await this.#laterSyncs.catch(() => undefined)
      await this.#checkpoints.rewrite()
      await this.#syncLog()
      await retryWhileBusy(() => this.#checkpoints.truncate())
    } catch (error) {
      throw new StoreUnavailable(
        'A sync of the write-ahead log failed. Writes are refused until that log is written back into the database.',
        { cause: error },
      )
    }
    this.#sync = this.#laterSyncs = Promise.resolve()
    this.#mayHaveGap = false
  }

  async eraseTraces(): Promise<void> {
    if (this.#mayHaveGap)
      throw new StoreUnavailable('The write-ahead log cannot be emptied, because a sync of it has failed.')
    await retryWhileBusy(() => this.#checkpoints.truncate())
  }

  classify(error: unknown): 'unavailable' | 'unit' {
    if (!(error instanceof Sqlite.SqliteError)) return this.#writing.open ? 'unit' : 'unavailable'
    return /^SQLITE_(FULL|IOERR|READONLY|BUSY|LOCKED|CANTOPEN|CORRUPT|NOTADB|NOMEM|PERM|AUTH)/.test(error.code)
      ? 'unavailable'
      : 'unit'
  }

  async close(): Promise<void> {
    if (this.#laterTimer !== null) clearTimeout(this.#laterTimer)
    await this.#laterSyncs.catch(() => undefined)
    // The last connection writes the log back.
    if (this.#mayHaveGap) await this.#closeGap().catch(() => undefined)
    await this.#checkpoints.close()
    this.#reading.close()
    this.#writing.close()
    closeSync(this.#log)
    closeSync(this.#index)
  }
}

/** Retries while another process holds a lock. SQLite's own busy handler would block the event loop. */
async function retryWhileBusy<T>(step: () => T | Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + BUSY_TIMEOUT_MS
  for (let failures = 0; ; failures += 1) {
    try {
      return await step()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= giveUpAt) throw error
    }
    await sleep(backoffMs(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS))
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')
}

/** Opens the write-ahead log, which exists while a connection is open, and makes its folder entry durable. */
function openLog(db: Sqlite.Database, path: string): number {
  // A write without a change creates the log.
  db.exec(`pragma user_version = ${db.pragma('user_version', { simple: true })}`)
  syncFolder(dirname(path))
  return openSync(`${path}-wal`, 'r+')
}

/** A statement without its number, which SQLite does not need. */
type Text<I, O> = Omit<Statement<I, O>, 'id'>

class SqliteSession implements Session {
  protected readonly db: Sqlite.Database
  readonly #prepared = new BoundedMap<string, Sqlite.Statement>(PREPARED_STATEMENTS)

  constructor(db: Sqlite.Database) {
    this.db = db
  }

  async query<O>(query: Compilable<O>): Promise<O[]> {
    return this.each<object, O>(query.compile(), [{}])
  }

  run<I extends object, O>(statement: Statement<I, O>, values: I): Promise<O[]> {
    return this.each(statement, [values])
  }

  async each<I extends object, O>(statement: Text<I, O>, rows: readonly I[]): Promise<O[]> {
    try {
      return this.executeAll(statement, rows)
    } catch (error) {
      if (!isBusy(error)) throw error
      return retryWhileBusy(() => this.executeAll(statement, rows))
    }
  }

  protected executeAll<I extends object, O>({ sql, parameters }: Text<I, O>, rows: readonly I[]): O[] {
    const prepared = this.#prepared.get(sql) ?? this.db.prepare(sql)
    // Each use makes a statement the newest, so the statement that was not used for the longest time is dropped first.
    this.#prepared.set(sql, prepared)
    const answers: O[] = []
    for (const row of rows) {
      const values: unknown[] = []
      for (const parameter of parameters)
        values.push(parameter instanceof Parameter ? row[parameter.name as keyof I] : parameter)
      if (!prepared.reader) prepared.run(values)
      else for (const answer of prepared.all(values)) answers.push(answer as O)
    }
    return answers
  }
}

class SqliteTransaction extends SqliteSession implements Transaction {
  /** Resolves when the commit is synced, or immediately if `isSynced` is false. */
  readonly commit: (isSynced?: boolean) => Promise<void>

  constructor(db: Sqlite.Database, commit: (isSynced?: boolean) => Promise<void>) {
    super(db)
    this.commit = commit
  }

  /** Runs the statement synchronously, so an error is thrown here. */
  post<I extends object>(statement: RowsStatement<I, unknown>, rows: readonly I[]): void {
    this.executeAll(statement, rows)
  }

  async rollback(): Promise<void> {
    // SQLite may have rolled back already, for example on a full disk.
    if (this.db.open && this.db.inTransaction) this.db.exec('rollback')
  }
}
