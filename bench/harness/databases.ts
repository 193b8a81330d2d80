import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import pg from 'pg'
import { pino } from 'pino'
import { openStore, type StoreOptions } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { startPostgres } from '../../test/databases/postgres.ts'
import type { StoreKind } from './figure.ts'

const MASTER_KEY_BYTES = 32
/** High enough that no call is refused. */
const RATE_PER_MINUTE = 1_000_000_000

/** A data folder for one service, and on PostgreSQL a database. */
export interface BenchDatabase {
  readonly storeOptions: Omit<StoreOptions, 'logger'>
  /** Call it only while no service runs on the database. */
  openStore(): Promise<Store>
  /** Runs directly on the database. Nothing else may use the database during that time. */
  execute(statements: readonly string[]): Promise<void>
  /** Does the maintenance that the database would otherwise do during a measurement, after many writes. */
  settle(): Promise<void>
}

/** Creates databases of one kind. For PostgreSQL, starts a server that syncs its commits. */
export async function openDatabases(
  kind: StoreKind,
  cleanUp: AsyncDisposableStack,
): Promise<() => Promise<BenchDatabase>> {
  if (kind === 'sqlite') return async () => createSqliteDatabase(createFolder(cleanUp))
  const server = await startPostgres({ fsync: true })
  cleanUp.defer(() => server.stop())
  return async () => createPostgresDatabase(createFolder(cleanUp), await server.createDatabase())
}

function createSqliteDatabase(dataDir: string): BenchDatabase {
  const storeOptions = optionsFor(dataDir)
  async function execute(statements: readonly string[]): Promise<void> {
    const db = new Sqlite(join(dataDir, 'pombal.db'))
    for (const statement of statements) db.exec(statement)
    db.close()
  }
  return {
    storeOptions,
    openStore: () => open(storeOptions),
    execute,
    settle: () => execute(['analyze', 'pragma wal_checkpoint(truncate)']),
  }
}

function createPostgresDatabase(dataDir: string, databaseUrl: string): BenchDatabase {
  const storeOptions = { ...optionsFor(dataDir), databaseUrl }
  async function execute(statements: readonly string[]): Promise<void> {
    const client = new pg.Client(databaseUrl)
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
  return {
    storeOptions,
    openStore: () => open(storeOptions),
    execute,
    settle: () => execute(['vacuum analyze', 'checkpoint']),
  }
}

function createFolder(cleanUp: AsyncDisposableStack): string {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-bench-'))
  cleanUp.defer(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function optionsFor(dataDir: string): Omit<StoreOptions, 'logger'> {
  return { dataDir, masterKey: randomBytes(MASTER_KEY_BYTES), ratePerMinute: RATE_PER_MINUTE }
}

function open(options: Omit<StoreOptions, 'logger'>): Promise<Store> {
  return openStore({ ...options, logger: pino({ level: 'silent' }) })
}
