import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, PostgresDialect, SqliteDialect, sql } from 'kysely'
import { KeyCheck } from './encryption/key-check.ts'
import { Sealing } from './encryption/sealing.ts'
import type { DatabaseKind } from './engine/database-kind.ts'
import { findMissingSteps, refuseIncompatible } from './engine/migrations/migrate.ts'
import { createMigrationPool, reach } from './engine/postgres/pools.ts'
import { refuseTransactionPooler } from './engine/postgres/refuse-transaction-pooler.ts'
import {
  explained as explainedPostgres,
  refuseOldVersion,
  refuseOtherEncoding,
  refuseUnwritable,
} from './engine/postgres/unusable.ts'
import type { Database } from './engine/schema/database.ts'
import { refuseMoved } from './engine/sqlite/move-marker.ts'
import { refuseUnfinishedRestore } from './engine/sqlite/restore.ts'
import { openSqlite } from './engine/sqlite/sqlite-backend.ts'
import { explained, isInterruptedWrite, refuseReadOnlyFiles } from './engine/sqlite/unusable.ts'
import { Statements } from './engine/statement.ts'
import { StoreUnusable } from './errors.ts'
import { folderQuery, toFolderRecord } from './media/folder-record.ts'
import type { FolderRecord } from './media/media.ts'
import { refuseUnmovedData } from './unmoved-data.ts'

interface ExamineOptions {
  /** The folder of the SQLite database. With `databaseUrl`, it is only searched for data that was not moved. */
  dataDir: string
  databaseUrl: string | null
  /** Null if it is not known. The data is then not compared with it. */
  masterKey: Uint8Array | null
}

/** The state of a database that Pombal can use. */
export interface StoreExamination {
  bytes: number
  /** The migrations that the next start will apply. All of them for an empty database. */
  missingSteps: readonly string[]
  /** The time of the newest event. Null if there is none, or if migrations are missing. */
  newestEventAt: number | null
  /** Null if migrations are missing. */
  storage: FolderRecord | null
  /** The database's time minus this machine's, in milliseconds. Null on SQLite. */
  clockDifferenceMs: number | null
  /**
   * False for a PostgreSQL with `fsync = off`, which may lose everything in a crash of its machine, unless the provider
   * stores the write-ahead log elsewhere.
   */
  isSynced: boolean
}

/**
 * Checks the database without writing to it, even while the service runs.
 * @returns null if there is no database yet
 * @throws StoreUnusable or StoreUnavailable as a start would; StoreUnusable also if SQLite finds a damaged page
 */
export async function examineStore({
  dataDir,
  databaseUrl,
  masterKey,
}: ExamineOptions): Promise<StoreExamination | null> {
  const keyCheck = masterKey && new KeyCheck(new Sealing(masterKey))
  return databaseUrl === null ? examineSqlite(dataDir, keyCheck) : examinePostgres(databaseUrl, dataDir, keyCheck)
}

async function examineSqlite(dataDir: string, keyCheck: KeyCheck | null): Promise<StoreExamination | null> {
  const path = join(dataDir, 'pombal.db')
  refuseMoved(dataDir)
  refuseUnfinishedRestore(dataDir)
  if (!existsSync(path)) return null
  refuseReadOnlyFiles(path)
  try {
    const database = openSqlite(path, { readonly: true })
    const db = new Kysely<Database>({ dialect: new SqliteDialect({ database }) })
    try {
      const found = await examine(db, 'sqlite', keyCheck)
      const damage = database.pragma('quick_check(1)', { simple: true })
      if (damage !== 'ok') throw new StoreUnusable(`${path} is damaged: ${damage}. Restore a backup.`)
      return { ...found, bytes: statSync(path).size, clockDifferenceMs: null, isSynced: true }
    } finally {
      await db.destroy()
    }
  } catch (error) {
    if (isInterruptedWrite(error))
      throw new StoreUnusable(
        `${path} was being created when its process ended. Start the service, which completes it.`,
      )
    throw explained(error, path)
  }
}

async function examinePostgres(
  databaseUrl: string,
  dataDir: string,
  keyCheck: KeyCheck | null,
): Promise<StoreExamination> {
  const pool = createMigrationPool(databaseUrl, 1, undefined)
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  try {
    await reach(pool.query('select 1'))
    await refuseOldVersion(pool, databaseUrl)
    await refuseOtherEncoding(pool, databaseUrl)
    await refuseTransactionPooler(databaseUrl)
    const found = await examine(db, 'postgres', keyCheck)
    await refuseUnmovedData(db, dataDir)
    await refuseUnwritable(pool, databaseUrl, found.missingSteps.length > 0)
    const askedAt = Date.now()
    const { rows } = await sql<{ now: number; bytes: number; is_synced: boolean }>`select
      floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now,
      pg_database_size(current_database()) as bytes,
      current_setting('fsync')::boolean as is_synced`.execute(db)
    const { now, bytes, is_synced: isSynced } = rows[0]!
    return { ...found, bytes, isSynced, clockDifferenceMs: Math.round(now - (askedAt + Date.now()) / 2) }
  } catch (error) {
    throw explainedPostgres(error, databaseUrl)
  } finally {
    await db.destroy()
  }
}

async function examine(db: Kysely<Database>, kind: DatabaseKind, keyCheck: KeyCheck | null) {
  await refuseIncompatible(db, kind)
  await keyCheck?.verify(db, kind)
  const missingSteps = await findMissingSteps(db, kind)
  if (missingSteps.length > 0) return { missingSteps, newestEventAt: null, storage: null }
  const { now } = new Statements(kind)
  const storage = toFolderRecord(await folderQuery({ db, now }).executeTakeFirstOrThrow())
  return { missingSteps, newestEventAt: await findNewestEventAt(db), storage }
}

/** Reads one event of each instance: the one with the highest number. */
async function findNewestEventAt(db: Kysely<Database>): Promise<number | null> {
  const newest = await db
    .selectFrom('instances')
    .select(({ selectFrom }) =>
      selectFrom('events')
        .select('events.created_at')
        .whereRef('events.instance_id', '=', 'instances.id')
        .where('events.seq', 'is not', null)
        .orderBy('events.seq', 'desc')
        .limit(1)
        .as('at'),
    )
    .execute()
  const times = newest.flatMap(({ at }) => (at === null ? [] : [at]))
  return times.length === 0 ? null : Math.max(...times)
}
