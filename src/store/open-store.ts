import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, PostgresDialect, SqliteDialect, sql } from 'kysely'
import { DatabaseClock } from './clock.ts'
import { DatabaseStore } from './database-store.ts'
import { KeyCheck } from './encryption/key-check.ts'
import { Sealing } from './encryption/sealing.ts'
import type { Session } from './engine/backend.ts'
import { DIALECTS, ICU_COLLATION, postgresFold } from './engine/dialect.ts'
import { giveToOwnerOf } from './engine/file-owner.ts'
import type { StoreLogger } from './engine/logger.ts'
import { findUpgrade, migrate, refuseIncompatible } from './engine/migrations/migrate.ts'
import { createMigrationPool, reach } from './engine/postgres/pools.ts'
import { PostgresBackend } from './engine/postgres/postgres-backend.ts'
import { refuseTransactionPooler } from './engine/postgres/refuse-transaction-pooler.ts'
import { retryUntilLocked } from './engine/postgres/retry-until-locked.ts'
import { SharedHints } from './engine/postgres/shared-hints.ts'
import { explained as explainedPostgres, refuseOldVersion, refuseOtherEncoding } from './engine/postgres/unusable.ts'
import type { Database } from './engine/schema/database.ts'
import { lockDataDir } from './engine/sqlite/data-dir-lock.ts'
import { completeRestore, refuseUnfinishedRestore } from './engine/sqlite/restore.ts'
import { openSqlite, SqliteBackend } from './engine/sqlite/sqlite-backend.ts'
import { TransactionalSqliteDialect } from './engine/sqlite/transactional-dialect.ts'
import { explained, isInterruptedWrite, rollBackInterruptedWrite } from './engine/sqlite/unusable.ts'
import { backUpBeforeUpgrade, eraseOlderCopies } from './engine/sqlite/upgrade-backup.ts'
import { Statements } from './engine/statement.ts'
import type { StoreObserver } from './observer.ts'
import type { Store } from './store.ts'
import { refuseUnmovedData } from './unmoved-data.ts'

export interface StoreOptions {
  /** The folder of the SQLite database. With `databaseUrl`, it is only searched for data that was not moved. */
  dataDir: string
  /** `postgres://…` */
  databaseUrl?: string | undefined
  /** 32 bytes. Encrypts secrets and credentials. */
  masterKey: Uint8Array
  /** Calls per instance in a window of 60 s. */
  ratePerMinute: number
  /** How many copies from before upgrades are kept on SQLite. Default: none is made. */
  upgradeBackups?: number
  logger?: StoreLogger | undefined
  observer?: StoreObserver | undefined
}

/** Accessible to its owner only, because the database contains private messages. */
const PRIVATE_FOLDER = 0o700
/** The migrator uses one of them. */
const MIGRATING_CONNECTIONS = 2

/**
 * Opens the store and migrates its schema.
 * @throws DataDirInUse, ForeignDatabase, NewerSchema or WrongMasterKey before anything is written; StoreUnusable if the
 * database is damaged or refuses access; StoreUnavailable if it cannot be reached
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const sealing = new Sealing(options.masterKey)
  const { databaseUrl } = options
  return databaseUrl === undefined ? openOnSqlite(options, sealing) : openOnPostgres(databaseUrl, options, sealing)
}

async function openOnSqlite(options: StoreOptions, sealing: Sealing): Promise<Store> {
  const { dataDir, ratePerMinute, observer } = options
  mkdirSync(dataDir, { recursive: true, mode: PRIVATE_FOLDER })
  const path = join(dataDir, 'pombal.db')
  let unlock: (() => void) | undefined
  try {
    unlock = lockDataDir(dataDir)
    refuseUnfinishedRestore(dataDir)
    completeRestore(dataDir, new Date())
    if (existsSync(path)) await refuseIncompatibleBeforeWriting(path)
    const db = new Kysely<Database>({ dialect: new TransactionalSqliteDialect({ database: openSqlite(path) }) })
    try {
      const keyCheck = new KeyCheck(sealing)
      giveToOwnerOf(dataDir, path)
      const copy = await prepareUpgrade(db, keyCheck, options)
      await migrate(db, 'sqlite', keyCheck)
      if (copy !== null) eraseOlderCopies(copy, options.upgradeBackups ?? 1)
      // The lock guarantees that no other process is left that could hold a lease or write a file.
      // The time may be in the future. It is cleared because `acquireLeftOver` compares it even for a released lease.
      await db.updateTable('leases').set({ owner: null, lease_until: 0 }).execute()
      await db.updateTable('media_files').set({ due_at: 0 }).where('state', '=', 'writing').execute()
      await db.deleteFrom('nodes').execute()
    } finally {
      await db.destroy()
    }
    return new DatabaseStore(
      new SqliteBackend(path),
      new Statements('sqlite'),
      sealing,
      ratePerMinute,
      unlock,
      observer,
    )
  } catch (error) {
    unlock?.()
    throw explained(error, path)
  }
}

/**
 * Copies the database before an upgrade, if copies are kept.
 * @returns the path of the copy; null if none is needed or kept
 * @throws StoreUnusable
 */
async function prepareUpgrade(
  db: Kysely<Database>,
  keyCheck: KeyCheck,
  { dataDir, upgradeBackups = 0, logger }: StoreOptions,
): Promise<string | null> {
  const steps = await findUpgrade(db, 'sqlite')
  if (steps.length === 0) return null
  await keyCheck.verify(db, 'sqlite')
  const backup = upgradeBackups === 0 ? null : await backUpBeforeUpgrade(dataDir, new Date())
  logger?.info({ steps, backup }, 'store.upgrading')
  return backup
}

/** Checks through a read-only connection: opening for writing would already change another application's file. */
async function refuseIncompatibleBeforeWriting(path: string): Promise<void> {
  try {
    await refuseIncompatibleReadOnly(path)
  } catch (error) {
    if (!isInterruptedWrite(error)) throw error
    rollBackInterruptedWrite(path)
    await refuseIncompatibleReadOnly(path)
  }
}

async function refuseIncompatibleReadOnly(path: string): Promise<void> {
  const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: openSqlite(path, { readonly: true }) }) })
  try {
    await refuseIncompatible(db, 'sqlite')
  } finally {
    await db.destroy()
  }
}

async function openOnPostgres(databaseUrl: string, options: StoreOptions, sealing: Sealing): Promise<Store> {
  const hints = new SharedHints(databaseUrl, options.logger)
  try {
    await migratePostgres(databaseUrl, options, new KeyCheck(sealing), hints)
    return await connectToPostgres(databaseUrl, options, sealing, hints)
  } catch (error) {
    await hints.close()
    throw explainedPostgres(error, databaseUrl)
  }
}

/** Leaves `hints` connected. */
async function migratePostgres(
  databaseUrl: string,
  { dataDir, logger }: StoreOptions,
  keyCheck: KeyCheck,
  hints: SharedHints,
): Promise<void> {
  const pool = createMigrationPool(databaseUrl, MIGRATING_CONNECTIONS, logger)
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  try {
    await reach(pool.query('select 1'))
    await refuseOldVersion(pool, databaseUrl)
    await refuseOtherEncoding(pool, databaseUrl)
    await refuseTransactionPooler(databaseUrl)
    await retryUntilLocked(async () => {
      await refuseIncompatible(db, 'postgres')
      await keyCheck.verify(db, 'postgres')
      await refuseUnmovedData(db, dataDir)
    }, logger)
    const steps = await findUpgrade(db, 'postgres')
    if (steps.length > 0) logger?.info({ steps }, 'store.upgrading')
    await retryUntilLocked(() => migrate(db, 'postgres', keyCheck), logger)
    await reach(hints.open())
    // A rotation or move that begins after this sees the connection of the hints (`waitUntilAlone`).
    await retryUntilLocked(() => keyCheck.verify(db, 'postgres'), logger)
  } finally {
    await pool.end()
  }
}

async function connectToPostgres(
  databaseUrl: string,
  { ratePerMinute, logger, observer }: StoreOptions,
  sealing: Sealing,
  hints: SharedHints,
): Promise<Store> {
  const backend = new PostgresBackend(databaseUrl, logger)
  // PostgreSQL can be built without ICU.
  const statements = new Statements('postgres', (await hasIcu(backend.reader)) ? {} : { fold: postgresFold('default') })
  const clock = await DatabaseClock.open(backend.reader, statements, logger)
  const afterClose = () => clock.close()
  return new DatabaseStore(backend, statements, sealing, ratePerMinute, afterClose, observer, hints, clock)
}

async function hasIcu(reader: Session): Promise<boolean> {
  const found = sql<boolean>`exists (select 1 from pg_catalog.pg_collation where collname = ${ICU_COLLATION})`
  const [row] = await reader.query(DIALECTS.postgres.builder.selectNoFrom(found.as('found')))
  return row!.found
}
