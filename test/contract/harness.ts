import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { DatabaseKind } from '../../src/store/engine/database-kind.ts'
import { openStore, type StoreOptions } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { queryPostgres } from '../databases/query-postgres.ts'

export const MASTER_KEY = new Uint8Array(32).fill(7)

/** A separate database. Opens stores on it and bypasses them. */
export interface StoreHarness {
  readonly kind: DatabaseKind
  /** The default options of `open`. */
  readonly options: StoreOptions
  open(options?: Partial<StoreOptions>): Promise<Store>
  /** Runs a statement directly on the database, for example to make rows older. */
  execute(statement: string): Promise<Record<string, unknown>[]>
  /** Closes all opened stores and removes the database. */
  dispose(): Promise<void>
}

export type CreateHarness = () => Promise<StoreHarness>

export async function createSqliteHarness(): Promise<StoreHarness> {
  const dataDir = await mkdtemp(join(tmpdir(), 'pombal-store-'))
  return createHarness(
    'sqlite',
    { dataDir, masterKey: MASTER_KEY, ratePerMinute: 100 },
    async statement => {
      const db = new Sqlite(join(dataDir, 'pombal.db'))
      try {
        const prepared = db.prepare(statement)
        return prepared.reader ? (prepared.all() as Record<string, unknown>[]) : [{ changes: prepared.run().changes }]
      } finally {
        db.close()
      }
    },
    () => rm(dataDir, { recursive: true, force: true }),
  )
}

/** @param serverUrl a server on which databases can be created */
export async function createPostgresHarness(serverUrl: string): Promise<StoreHarness> {
  const name = `contract_${randomBytes(6).toString('hex')}`
  await queryPostgres(serverUrl, `create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return createHarness(
    'postgres',
    { dataDir: tmpdir(), databaseUrl: url.href, masterKey: MASTER_KEY, ratePerMinute: 100 },
    statement => queryPostgres(url.href, statement),
    async () => {
      await queryPostgres(serverUrl, `drop database ${name} with (force)`)
    },
  )
}

function createHarness(
  kind: StoreHarness['kind'],
  options: StoreOptions,
  execute: StoreHarness['execute'],
  remove: () => Promise<void>,
): StoreHarness {
  const opened: Store[] = []
  return {
    kind,
    options,
    execute,
    async open(changes = {}) {
      const store = await openStore({ ...options, ...changes })
      opened.push(store)
      return store
    },
    async dispose() {
      for (const store of opened) await store.close()
      await remove()
    },
  }
}
