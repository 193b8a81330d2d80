import type Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { KeyCheck } from '../encryption/key-check.ts'
import { findMissingSteps, refuseIncompatible } from '../engine/migrations/migrate.ts'
import type { Database } from '../engine/schema/database.ts'
import { openSqlite } from '../engine/sqlite/sqlite-backend.ts'
import { isInterruptedWrite } from '../engine/sqlite/unusable.ts'
import { StoreUnusable } from '../errors.ts'
import { type Column, TableDigest, type Value } from './table-digest.ts'
import { REPLACED } from './tables.ts'

/** The largest number of rows in one statement. A statement also ends after this many bytes. */
const PAGE_ROWS = 5_000
const PAGE_BYTES = 4 * 1024 * 1024

/** The values of the last row's primary key. */
export type After = readonly (string | number)[]

export interface Page {
  rows: readonly (readonly Value[])[]
  after: After
}

/** The SQLite database that the data is moved from. It is only read. */
export class SqliteSource {
  readonly #path: string
  readonly #database: Sqlite.Database

  constructor(path: string) {
    this.#path = path
    this.#database = openSqlite(path, { readonly: true })
  }

  /** @throws StoreUnusable unless the data has the schema of this version and the master key is right */
  async refuseUnusable(keyCheck: KeyCheck): Promise<void> {
    const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: this.#database }) })
    try {
      await refuseIncompatible(db, 'sqlite')
      const missing = await findMissingSteps(db, 'sqlite')
      if (missing.length > 0)
        throw new StoreUnusable(
          `${this.#path} was last used by an older version (it lacks ${missing.join(', ')}). Start this version on it once, ` +
            'without DATABASE_URL, and stop it. Nothing was changed.',
        )
      await keyCheck.verify(db, 'sqlite')
    } catch (error) {
      if (isInterruptedWrite(error))
        throw new StoreUnusable(
          `${this.#path} was being created when its process ended. Start the service, which completes it.`,
        )
      throw error
    }
  }

  columns(table: string): string[] {
    return this.#list(`select name from pragma_table_info(?)`, table)
  }

  count(table: string): number {
    return this.#database.prepare(`select count(*) from "${table}"`).pluck().get() as number
  }

  /** The rows after `after` in the order of the primary key. */
  *pages(table: string, columns: readonly Column[], after: After | null): Generator<Page> {
    const key = this.#list('select name from pragma_table_info(?) where pk > 0 order by pk', table)
    const keyAt = key.map(name => columns.findIndex(column => column.name === name))
    const names = columns.map(({ name }) => REPLACED[table]?.[name] ?? `"${name}"`)
    const list = key.map(name => `"${name}"`).join()
    const start = after === null ? '' : `where (${list}) > (${after.map(() => '?').join()})`
    const query = `select ${names.join()} from "${table}" ${start} order by ${list}`
    let rows: Value[][] = []
    let bytes = 0
    const finish = (): Page => {
      const last = rows.at(-1)!
      const page = { rows, after: keyAt.map(index => last[index] as string | number) }
      rows = []
      bytes = 0
      return page
    }
    for (const found of this.#database
      .prepare(query)
      .raw()
      .iterate(...(after ?? []))) {
      const row = (found as Value[]).map(storable)
      rows.push(row)
      for (const value of row) bytes += typeof value === 'object' ? (value?.length ?? 0) : 8 + String(value).length
      if (rows.length >= PAGE_ROWS || bytes >= PAGE_BYTES) yield finish()
    }
    if (rows.length > 0) yield finish()
  }

  /** The highest number that each numbered table has assigned. */
  sequences(): { name: string; seq: number }[] {
    return this.#database.prepare('select name, seq from sqlite_sequence').all() as { name: string; seq: number }[]
  }

  meta(): { key: string; value: Uint8Array }[] {
    return this.#database.prepare('select key, value from meta').all() as { key: string; value: Uint8Array }[]
  }

  close(): void {
    this.#database.close()
  }

  #list(query: string, table: string): string[] {
    return this.#database.prepare(query).pluck().all(table) as string[]
  }
}

/** PostgreSQL's text cannot contain U+0000. The service replaces it in the same way when it writes there. */
function storable(value: Value): Value {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value
}

/** The digest of a page alone. */
export function digestOf({ rows }: Page): TableDigest {
  const digest = new TableDigest()
  for (const row of rows) digest.add(row)
  return digest
}
