import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely } from 'kysely'
import { DatabaseStore } from './database-store.ts'
import { KeyCheck } from './key-check.ts'
import { migrate } from './migrations/migrate.ts'
import type { Database } from './schema/database.ts'
import { Sealing } from './sealing.ts'
import { lockDataDir } from './sqlite/data-dir-lock.ts'
import { openSqlite, SqliteBackend } from './sqlite/sqlite-backend.ts'
import { TransactionalSqliteDialect } from './sqlite/transactional-dialect.ts'
import { Statements } from './statement.ts'
import type { Store } from './store.ts'

export interface StoreOptions {
  /** Where the SQLite database is, unless `databaseUrl` is given. */
  dataDir: string
  /** `postgres://…` */
  databaseUrl?: string | undefined
  /** 32 bytes, under which secrets are sealed. */
  masterKey: Uint8Array
  /** Calls per instance in a window of 60 s. */
  ratePerMinute: number
  logger?: StoreLogger | undefined
}

export interface StoreLogger {
  warn(fields: object, message: string): void
}

/**
 * Opens the store and brings its schema up to date. Throws `DataDirInUse`, `NewerSchema` or `WrongMasterKey` before
 * anything is written, `StoreUnavailable` when the database cannot be reached.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const sealing = new Sealing(options.masterKey)
  return openOnSqlite(options, sealing)
}

async function openOnSqlite({ dataDir, ratePerMinute }: StoreOptions, sealing: Sealing): Promise<Store> {
  mkdirSync(dataDir, { recursive: true })
  const unlock = lockDataDir(dataDir)
  try {
    const path = join(dataDir, 'pombal.db')
    const db = new Kysely<Database>({ dialect: new TransactionalSqliteDialect({ database: openSqlite(path) }) })
    try {
      await migrate(db, 'sqlite', new KeyCheck(sealing))
      // Whoever held them is gone: this process has the folder to itself.
      await db.updateTable('leases').set({ owner: null, lease_until: 0 }).where('owner', 'is not', null).execute()
    } finally {
      await db.destroy()
    }
    return new DatabaseStore(new SqliteBackend(path), new Statements('sqlite'), sealing, ratePerMinute, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}
