import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { type KeyCheck, MOVE_KEY } from '../encryption/key-check.ts'
import { listTables } from '../engine/migrations/list-tables.ts'
import { findMissingSteps, migrate, refuseIncompatible } from '../engine/migrations/migrate.ts'
import { createMigrationPool, reach } from '../engine/postgres/pools.ts'
import { refuseTransactionPooler } from '../engine/postgres/refuse-transaction-pooler.ts'
import { retryUntilLocked } from '../engine/postgres/retry-until-locked.ts'
import { refuseOldVersion, refuseOtherEncoding } from '../engine/postgres/unusable.ts'
import { waitUntilAlone } from '../engine/postgres/wait-until-alone.ts'
import type { Database } from '../engine/schema/database.ts'
import { StoreUnusable, WrongMasterKey } from '../errors.ts'
import type { After, Page } from './sqlite-source.ts'
import { type Column, digestQuery } from './table-digest.ts'
import { MOVED_TABLES } from './tables.ts'

/** The ID of the move that the data came from. */
const MOVED_FROM_KEY = 'moved_from'
const NOT_EMPTY = 'Give Pombal a new, empty database, or empty this one. Nothing was changed.'

/** How much of one table has been copied. Committed together with the rows. */
export interface TableProgress {
  rows: number
  /** The sum of the rows' digests, as a decimal number. */
  sum: string
  /** The primary key of the last copied row; null if none was copied. */
  after: After | null
}

/** The record of an unfinished move, in the table `meta`. */
export interface MoveRecord {
  id: string
  tables: Record<string, TableProgress>
}

/** The progress of the move `id` in a PostgreSQL database. */
type TargetState = { kind: 'empty' } | { kind: 'begun'; record: MoveRecord } | { kind: 'finished' }

/** The PostgreSQL database that the data is moved to. */
export class PostgresTarget {
  readonly #url: string
  /** One connection. */
  readonly #pool: pg.Pool
  readonly #db: Kysely<Database>

  /** The host and name of the database, for messages to people. */
  readonly place: string

  constructor(url: string) {
    this.#url = url
    const { host, pathname } = new URL(url)
    this.place = host + pathname
    this.#pool = createMigrationPool(url, 1, undefined)
    this.#db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: this.#pool }) })
  }

  /** @throws StoreUnusable or StoreUnavailable if the database cannot be used */
  async refuseUnusable(): Promise<void> {
    await reach(this.#pool.query('select 1'))
    await refuseOldVersion(this.#pool, this.#url)
    await refuseOtherEncoding(this.#pool, this.#url)
    await refuseTransactionPooler(this.#url)
    await refuseIncompatible(this.#db, 'postgres')
  }

  /** @throws StoreUnusable if the database contains anything other than this move */
  async find(id: string): Promise<TargetState> {
    const tables = await listTables(this.#db, 'postgres')
    if (!tables.includes('meta')) return { kind: 'empty' }
    if ((await this.#meta(MOVED_FROM_KEY))?.toString() === id) return { kind: 'finished' }
    const record = await this.readRecord()
    if (record === null) {
      await refuseRows(this.#pool, tables)
      return { kind: 'empty' }
    }
    if (record.id !== id)
      throw new StoreUnusable(
        `The PostgreSQL database contains a part of another move, which was given up. ${NOT_EMPTY}`,
      )
    if ((await findMissingSteps(this.#db, 'postgres')).length > 0)
      throw new StoreUnusable(
        `The move was begun with an older version: finish it with that version, or begin again. ${NOT_EMPTY}`,
      )
    return { kind: 'begun', record }
  }

  /** Creates the tables. @throws StillInUse or StoreUnusable if the database is in use or was created under another key */
  async prepare(keyCheck: KeyCheck): Promise<void> {
    // The migrator takes a second connection.
    const pool = createMigrationPool(this.#url, 2, undefined)
    const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
    try {
      await retryUntilLocked(() => migrate(db, 'postgres', keyCheck), undefined)
    } catch (error) {
      if (!(error instanceof WrongMasterKey)) throw error
      throw new StoreUnusable(`The PostgreSQL database was created under another master key. ${NOT_EMPTY}`)
    } finally {
      await db.destroy()
    }
    await waitUntilAlone(this.#pool)
  }

  /** @throws StillInUse if a service runs on this database */
  async refuseOthers(): Promise<void> {
    await waitUntilAlone(this.#pool)
  }

  /** From now on the service does not start on this database. */
  async begin(id: string): Promise<MoveRecord> {
    const record: MoveRecord = { id, tables: {} }
    await this.#transaction(async client => {
      // Prevents a second move at the same time.
      await client.query('lock table meta in exclusive mode')
      const { rowCount } = await client.query(`select 1 from meta where key in ('${MOVE_KEY}', '${MOVED_FROM_KEY}')`)
      if (rowCount !== 0) throw new StoreUnusable(`Another move into this database has begun. ${NOT_EMPTY}`)
      await refuseRows(client, MOVED_TABLES)
      await client.query('delete from meta')
      await client.query(`insert into meta (key, value) values ('${MOVE_KEY}', $1)`, [encode(record)])
    })
    return record
  }

  /** Waits for a commit of a killed move that is still running. @returns null if no move has begun */
  async readRecord(): Promise<MoveRecord | null> {
    const value = await this.#meta(MOVE_KEY, 'for update')
    return value && (JSON.parse(value.toString()) as MoveRecord)
  }

  async columns(table: string): Promise<Column[]> {
    const { rows } = await this.#pool.query<Column>(
      `select column_name::text as name, data_type::text as type from information_schema.columns
        where table_schema = current_schema() and table_name = $1 order by ordinal_position`,
      [table],
    )
    return rows
  }

  /**
   * Stores a page and the progress of the move in one commit.
   * @throws StoreUnusable if another process continues the move
   */
  async store(
    table: string,
    columns: readonly Column[],
    { rows }: Page,
    from: MoveRecord,
    to: MoveRecord,
  ): Promise<void> {
    const names = columns.map(({ name }) => `"${name}"`).join()
    const arrays = columns.map(({ type }, index) => `$${index + 3}::${type}[]`).join()
    const statement = `
      with noted as (update meta set value = $1 where key = '${MOVE_KEY}' and value = $2 returning 1)
      insert into "${table}" (${names}) overriding system value
      select * from unnest(${arrays}) as rows(${names}) where (select count(*) from noted) = 1`
    const values = columns.map((_, index) => rows.map(row => row[index]))
    const { rowCount } = await reach(this.#pool.query(statement, [encode(to), encode(from), ...values]))
    if (rowCount !== rows.length) throw new StoreUnusable('Another process continues this move.')
  }

  async digest(table: string, columns: readonly Column[]): Promise<{ rows: number; sum: string }> {
    const { rows } = await reach(this.#pool.query<{ rows: number; sum: string }>(digestQuery(table, columns)))
    return rows[0]!
  }

  /** A crash of the server may then lose the newest pages with their progress. `finish` waits for all of them. */
  async commitWithoutWaiting(): Promise<void> {
    await this.#pool.query('set synchronous_commit = off')
  }

  /** Continues the numbering, and makes this the database that the service starts on. */
  async finish(
    id: string,
    sequences: readonly { name: string; seq: number }[],
    meta: readonly { key: string; value: Uint8Array }[],
  ): Promise<void> {
    await reach(this.#pool.query('analyze'))
    await this.#pool.query('set synchronous_commit = on')
    await this.#transaction(async client => {
      for (const { name, seq } of sequences)
        if (seq > 0) await client.query(`select setval(pg_get_serial_sequence($1, 'seq'), $2)`, [name, seq])
      await client.query('delete from meta')
      for (const { key, value } of meta)
        await client.query('insert into meta (key, value) values ($1, $2)', [key, value])
      await client.query(`insert into meta (key, value) values ('${MOVED_FROM_KEY}', $1)`, [Buffer.from(id)])
    })
  }

  async close(): Promise<void> {
    await this.#db.destroy()
  }

  async #meta(key: string, more = ''): Promise<Buffer | null> {
    const query = () => this.#pool.query<{ value: Buffer }>(`select value from meta where key = $1 ${more}`, [key])
    const { rows } = await reach(retryUntilLocked(query, undefined))
    return rows[0]?.value ?? null
  }

  async #transaction(steps: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    const client = await reach(this.#pool.connect())
    try {
      await client.query('begin')
      await steps(client)
      await reach(client.query('commit'))
      client.release()
    } catch (error) {
      client.release(true)
      throw error
    }
  }
}

/** @throws StoreUnusable */
async function refuseRows(session: pg.Pool | pg.PoolClient, tables: readonly string[]): Promise<void> {
  const filled: string[] = []
  for (const table of MOVED_TABLES.filter(name => tables.includes(name))) {
    const { rowCount } = await session.query(`select 1 from "${table}" limit 1`)
    if (rowCount !== 0) filled.push(table)
  }
  if (filled.length > 0)
    throw new StoreUnusable(`The PostgreSQL database is not empty: it has rows in ${filled.join(', ')}. ${NOT_EMPTY}`)
}

function encode(record: MoveRecord): Buffer {
  return Buffer.from(JSON.stringify(record))
}
