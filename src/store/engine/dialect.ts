import {
  DummyDriver,
  type Expression,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import { MARKS } from '../../kit/fold.ts'
import type { DatabaseKind } from './database-kind.ts'
import type { Database } from './schema/database.ts'

/** A parameter of a compiled query. Each run supplies its value by name. */
export class Parameter {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export interface ColumnTypes {
  text: string
  integer: number
  blob: Uint8Array
  'text?': string | null
  'integer?': number | null
  'blob?': Uint8Array | null
}

export type Columns = Record<string, keyof ColumnTypes>

/** The SQL of queries that differs between the databases. The SQL of table definitions is in `Flavour`. */
export interface Dialect {
  /**
   * For queries that differ between the databases. Use it as the key of a `Record<DatabaseKind, …>`: the compiler then
   * demands an entry for each database.
   */
  kind: DatabaseKind
  /** Builds queries and runs none. */
  builder: Kysely<Database>
  /** The database's clock, in milliseconds since 1970. */
  now: RawBuilder<number>
  /** The table `input`: the rows that a statement is run for. */
  input(columns: Columns): RawBuilder<object>
  /** `clause`, or nothing on a database with one transaction at a time, which needs no row locks. */
  lock(clause: RawBuilder<unknown>): RawBuilder<unknown>
  /**
   * Whether `column` is among the results of a query, which runs once. PostgreSQL plans a plain `in` from
   * the table's statistics. If the table has grown since they were collected, it may compare each row with each result.
   */
  isAmong(column: string, results: Expression<unknown>): RawBuilder<boolean>
  /** Text as searches compare it (`fold`). */
  fold(text: RawBuilder<string>): RawBuilder<string>
  /** The size of the data. */
  bytes: RawBuilder<{ bytes: number }>
  /**
   * Whether several nodes may use the database. Then the rate limit counts calls in rows, writes use several connections, and nodes of
   * another version may run. It does not mean PostgreSQL: compare `kind` for that.
   */
  isShared: boolean
}

/** Its `lower` knows all letters. That of the database's own collation may know ASCII only. */
export const ICU_COLLATION = 'und-x-icu'

export const DIALECTS: Record<DatabaseKind, Dialect> = {
  sqlite: {
    kind: 'sqlite',
    builder: new Kysely({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: db => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    }),
    now: sql`cast(unixepoch('subsec') * 1000 as integer)`,
    input: columns =>
      sql`(select ${sql.join(Object.keys(columns).map(name => sql`${new Parameter(name)} as ${sql.id(name)}`))})`,
    lock: () => sql``,
    isAmong: (column, results) => sql`${sql.ref(column)} in ${results}`,
    // The backend defines this function.
    fold: text => sql`fold(${text})`,
    // `pombal.db` without its write-ahead log, which is written back at 64 MiB.
    bytes: sql`select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()`,
    isShared: false,
  },
  postgres: {
    kind: 'postgres',
    builder: new Kysely({
      dialect: {
        createAdapter: () => new PostgresAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: db => new PostgresIntrospector(db),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    }),
    now: sql`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`,
    input: postgresInput,
    lock: clause => clause,
    isAmong: (column, results) => sql`${sql.ref(column)} = any(array${results})`,
    fold: postgresFold(ICU_COLLATION),
    bytes: sql`select pg_database_size(current_database()) as bytes`,
    isShared: true,
  },
}

/** @param collation a collation of `pg_catalog`, which decides what `lower` knows */
export function postgresFold(collation: string): Dialect['fold'] {
  return text =>
    sql`regexp_replace(normalize(lower(${text} collate ${sql.id('pg_catalog', collation)}), NFD), ${sql.lit(MARKS)}, '', 'g')`
}

const ARRAY_TYPES: Record<string, string> = { text: 'text[]', integer: 'bigint[]', blob: 'bytea[]' }

function postgresInput(columns: Columns): RawBuilder<object> {
  const arrays = Object.entries(columns).map(([name, type]) => {
    const arrayType = ARRAY_TYPES[type.replace('?', '')]!
    return sql`${new Parameter(name)}::${sql.raw(arrayType)}`
  })
  return sql`(select * from unnest(${sql.join(arrays)}) as rows(${sql.join(Object.keys(columns).map(name => sql.id(name)))}))`
}
