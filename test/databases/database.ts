import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { queryPostgres } from './query-postgres.ts'

export const STORES = ['sqlite', 'postgres'] as const
export type StoreKind = (typeof STORES)[number]

/** The settings that start a service on a store of its own. */
export interface TestDatabase {
  /** Null: SQLite, in the service's data folder. */
  url: string | null
  env: Record<string, string>
  /** Rows that name the instance, in all tables. */
  countRowsOf(instanceId: string, dataDir: string): Promise<number>
  /** Changes the stored data while a service runs. */
  run(statement: string, dataDir: string): Promise<void>
  /** Reads the stored data while a service runs. */
  read(query: string, dataDir: string): Promise<Record<string, unknown>[]>
  /** Expires all leases immediately, so a test need not wait until they lapse. Does nothing on SQLite. */
  expireLeases(): Promise<void>
  dispose(): Promise<void>
}

/** @param postgresUrl a server on which databases can be created; tests get it from `inject('postgresUrl')` */
export async function createDatabase(store: StoreKind, postgresUrl: string): Promise<TestDatabase> {
  return store === 'sqlite' ? sqlite : createPostgresDatabase(postgresUrl)
}

const sqlite: TestDatabase = {
  url: null,
  env: {},
  async countRowsOf(instanceId, dataDir) {
    const database = new Database(join(dataDir, 'pombal.db'), { readonly: true })
    try {
      const tables = database.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[]
      let count = 0
      for (const table of tables) {
        const columns = database.pragma(`table_info(${table})`) as { name: string }[]
        const column = keyColumn(columns.map(({ name }) => name))
        if (column === null) continue
        count += database.prepare(`select count(*) from ${table} where ${column} = ?`).pluck().get(instanceId) as number
      }
      return count
    } finally {
      database.close()
    }
  },
  async run(statement, dataDir) {
    const database = new Database(join(dataDir, 'pombal.db'))
    database.exec(statement)
    database.close()
  },
  async read(query, dataDir) {
    const database = new Database(join(dataDir, 'pombal.db'), { readonly: true })
    try {
      return database.prepare(query).all() as Record<string, unknown>[]
    } finally {
      database.close()
    }
  },
  async expireLeases() {},
  async dispose() {},
}

/** A new, empty database on the server, with the keys that a service on it needs. */
async function createPostgresDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `pombal_${randomBytes(6).toString('hex')}`
  await queryPostgres(serverUrl, `create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    env: {
      DATABASE_URL: url.href,
      ADMIN_KEY: randomBytes(32).toString('hex'),
      MASTER_KEY: randomBytes(32).toString('base64'),
    },
    async countRowsOf(instanceId) {
      const columns = await queryPostgres<{ table_name: string; names: string[] }>(
        url.href,
        `select table_name::text, array_agg(column_name::text) as names
         from information_schema.columns where table_schema = 'public' group by table_name`,
      )
      let count = 0
      for (const { table_name: table, names } of columns) {
        const column = keyColumn(names)
        if (column === null) continue
        const [row] = await queryPostgres<{ count: string }>(
          url.href,
          `select count(*) from ${table} where ${column} = '${instanceId}'`,
        )
        count += Number(row?.count)
      }
      return count
    },
    run: async statement => {
      await queryPostgres(url.href, statement)
    },
    read: query => queryPostgres(url.href, query),
    expireLeases: async () => {
      await queryPostgres(url.href, 'update leases set lease_until = 0; update nodes set seen_until = 0')
    },
    dispose: async () => {
      await queryPostgres(serverUrl, `drop database ${name} with (force)`)
    },
  }
}

/** The column that identifies the instance, or null if the table has none. */
function keyColumn(columns: readonly string[]): string | null {
  if (columns.includes('instance_id')) return 'instance_id'
  return columns.includes('token_digest') ? 'id' : null
}
