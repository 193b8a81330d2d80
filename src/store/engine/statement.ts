import {
  type Compilable,
  type CompiledQuery,
  type InsertQueryBuilder,
  type InsertResult,
  type Kysely,
  type QueryCreator,
  type RawBuilder,
  type SelectType,
  sql,
} from 'kysely'
import type { DatabaseKind } from './database-kind.ts'
import { type Columns, type ColumnTypes, DIALECTS, type Dialect, Parameter } from './dialect.ts'
import type { Database } from './schema/database.ts'

/** A query compiled once and run often. */
export interface Statement<I, O> {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly id: number
  /** Never set. They carry the types of the parameters and the rows. */
  readonly input?: (input: I) => void
  readonly output?: () => O
}

/** A statement that processes many rows: in one round trip on PostgreSQL, in a loop on SQLite. */
export interface RowsStatement<I, O> extends Statement<I, O> {
  /** Lets the compiler refuse a statement for a single set of values in its place. */
  readonly takesRows: true
}

/** Columns of one table. */
type ColumnsOf<T extends keyof Database, C> = Columns & {
  [K in keyof C]: K extends keyof Database[T] ? unknown : never
}
/** The rows that a statement over these columns takes. */
export type RowOf<C extends Columns> = { [K in keyof C]: ColumnTypes[C[K]] }

interface InsertOptions<T extends keyof Database, O> {
  /** Columns whose value is an SQL expression. It may use the given columns, including the one that it replaces. */
  fixed?: { [K in keyof Database[T] & string]?: RawBuilder<unknown> }
  /** The columns of a key. A row with an existing key replaces the old row. */
  replace?: readonly (keyof Database[T] & string)[]
  /** Adds a conflict clause or a `returning` clause. */
  finish?: (query: InsertQueryBuilder<Database, T, InsertResult>) => Compilable<O>
}

interface FindOptions {
  where?: RawBuilder<boolean>
  /** Locks the rows until the transaction ends. */
  lock?: LockMode
}

type UntypedCreator = QueryCreator<Record<string, Record<string, unknown>>>

type LockMode = 'update' | 'no key update' | 'share' | 'key share'

/** Builds the queries of one database. Nothing here runs them. */
export class Statements {
  readonly db: Kysely<Database>
  /** The database's clock, in milliseconds since 1970. */
  readonly now: RawBuilder<number>
  readonly dialect: Dialect
  #count = 0

  constructor(kind: DatabaseKind, changes: Partial<Dialect> = {}) {
    this.dialect = { ...DIALECTS[kind], ...changes }
    this.db = this.dialect.builder
    this.now = this.dialect.now
  }

  /** A query whose parameters are the fields of `values`. */
  one<I extends object, O>(build: (values: I) => Compilable<O>): Statement<I, O> {
    const values = new Proxy({}, { get: (_, name) => new Parameter(String(name)) }) as I
    return this.#statement(build(values).compile())
  }

  /** A query over the table `input`, which contains the given rows. */
  rows<C extends Columns, O>(
    columns: C,
    build: (db: QueryCreator<Database & { input: RowOf<C> }>) => Compilable<O>,
  ): RowsStatement<RowOf<C>, O> {
    const input = this.dialect.input(columns)
    const db = this.db.with('input', () => input) as unknown as QueryCreator<Database & { input: RowOf<C> }>
    return { ...this.#statement<RowOf<C>, O>(build(db).compile()), takesRows: true }
  }

  /** Inserts the given rows into `table`. A row whose key exists fails, unless an option handles it. */
  insert<T extends keyof Database, C extends ColumnsOf<T, C>, O = unknown>(
    table: T,
    columns: C,
    { fixed = {}, replace = [], finish = query => query as Compilable<O> }: InsertOptions<T, O> = {},
  ): RowsStatement<RowOf<C>, O> {
    const given = Object.keys(columns).filter(name => !(name in fixed))
    const names = [...given, ...Object.keys(fixed)]
    const values = [...given.map(name => sql.ref(name)), ...Object.values<unknown>(fixed)]
    // SQLite needs a condition between a `select` and the `on conflict` that follows it.
    const rows = sql`select ${sql.join(values)} from input where true`
    const replaced = names
      .filter(name => !replace.some(key => key === name))
      .map(name => [name, sql.ref(`excluded.${name}`)])
    return this.rows<C, O>(columns, db => {
      const insert = (db as unknown as UntypedCreator).insertInto(table).columns(names).expression(rows)
      const query =
        replace.length === 0
          ? insert
          : insert.onConflict(oc => oc.columns([...replace]).doUpdateSet(Object.fromEntries(replaced)))
      return finish(query as unknown as InsertQueryBuilder<Database, T, InsertResult>)
    })
  }

  /** Finds the rows of `table` that match a given row in its columns. */
  find<T extends keyof Database, C extends ColumnsOf<T, C>, S extends keyof Database[T] & string>(
    table: T,
    columns: C,
    selected: readonly S[],
    { where = sql`true`, lock }: FindOptions = {},
  ): RowsStatement<RowOf<C>, { [K in S]: SelectType<Database[T][K]> }> {
    const names = selected.map(name => sql.ref(`${table}.${name}`))
    const lockClause = lock === undefined ? sql`` : this.#lockClause(lock, table)
    const query = sql`select ${sql.join(names)} from input join ${sql.table(table)} on ${same(table, columns)}
      where ${where} ${lockClause}`
    return this.#rawRows(columns, query)
  }

  /** Updates `columns` in the rows of `table` that match a given row in `key` and satisfy `where`. */
  update<T extends keyof Database, K extends ColumnsOf<T, K>, C extends ColumnsOf<T, C>>(
    table: T,
    key: K,
    columns: C,
    { fixed = {}, where = sql`true` }: Pick<InsertOptions<T, unknown>, 'fixed'> & Pick<FindOptions, 'where'> = {},
  ): RowsStatement<RowOf<K & C>, never> {
    const given = Object.keys(columns).map(name => sql`${sql.ref(name)} = ${sql.ref(`input.${name}`)}`)
    const others = Object.entries<unknown>(fixed).map(([name, value]) => sql`${sql.ref(name)} = ${value}`)
    const query = sql`update ${sql.table(table)} set ${sql.join([...given, ...others])} from input
      where ${same(table, key)} and ${where}`
    return this.#rawRows({ ...key, ...columns }, query)
  }

  /** Deletes the rows of `table` that match a given row in its columns. @returns one row for each deleted row */
  remove<T extends keyof Database, C extends ColumnsOf<T, C>>(table: T, columns: C): RowsStatement<RowOf<C>, object> {
    const key = sql.join(Object.keys(columns).map(name => sql.ref(name)))
    return this.#rawRows(
      columns,
      sql`delete from ${sql.table(table)} where (${key}) in (select ${key} from input) returning 1 as removed`,
    )
  }

  /** Locks the rows of `table` that a query finds until the transaction ends. */
  locking<Q extends { modifyEnd(modifier: RawBuilder<unknown>): unknown }>(query: Q, mode: LockMode, table: string): Q {
    return query.modifyEnd(this.#lockClause(mode, table)) as Q
  }

  #lockClause(mode: LockMode, table: string): RawBuilder<unknown> {
    return this.dialect.lock(sql`for ${sql.raw(mode)} of ${sql.ref(table)}`)
  }

  #rawRows<C extends Columns, O>(columns: C, query: RawBuilder<unknown>): RowsStatement<RowOf<C>, O> {
    const compiled = sql<O>`with input as ${this.dialect.input(columns)} ${query}`.compile(this.db)
    return { ...this.#statement<RowOf<C>, O>(compiled), takesRows: true }
  }

  #statement<I, O>(compiled: CompiledQuery<O>): Statement<I, O> {
    this.#count += 1
    return { sql: compiled.sql, parameters: compiled.parameters, id: this.#count }
  }
}

/** The row of `table` equals the row of `input` in these columns. */
function same(table: string, columns: Columns): RawBuilder<unknown> {
  const equal = Object.keys(columns).map(name => sql`${sql.ref(`${table}.${name}`)} = ${sql.ref(`input.${name}`)}`)
  return sql.join(equal, sql` and `)
}
