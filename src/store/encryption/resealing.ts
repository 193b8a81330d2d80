import { sql } from 'kysely'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import type { Backend } from '../engine/backend.ts'
import type { Database } from '../engine/schema/database.ts'
import type { Statements } from '../engine/statement.ts'
import {
  ALERTS_SCOPE,
  alertAddressPlace,
  credentialPlace,
  endpointSecretPlace,
  mediaKeyPlace,
  mediaSourcePlace,
  OPERATOR_SCOPE,
  operatorSecretPlace,
  proxyPlace,
  type Sealing,
} from './sealing.ts'

/** Rows in one commit. */
const STEP = 500

export interface Resealed {
  /** The number of rows with sealed values. */
  values: number
  /** The number of values that neither key decrypts. They are left unchanged. */
  unreadable: number
}

/** The scope and the place under which the values of a row are sealed. */
type SealedAs = [scope: string, place: string]

interface SealedColumns {
  table: keyof Database
  /** The primary key. */
  key: readonly string[]
  /** The columns with sealed values. If the first one is null, the row has none. */
  values: readonly string[]
  sealedAs(key: Record<string, string>): SealedAs
}

/** The key columns and the sealed columns. */
type Row = Record<string, unknown>

/** Every sealed value, except passkey answers, which expire soon. */
const SEALED: readonly SealedColumns[] = [
  columns('instances', ['id'], ['webhook_secret', 'previous_secret'], row => [
    row.id,
    endpointSecretPlace(row.id, DEFAULT_ENDPOINT),
  ]),
  columns('endpoints', ['instance_id', 'id'], ['secret', 'previous_secret'], row => [
    row.instance_id,
    endpointSecretPlace(row.instance_id, row.id),
  ]),
  columns('credentials', ['instance_id', 'type', 'id'], ['value'], row => [
    row.instance_id,
    credentialPlace(row.instance_id, row.type, row.id),
  ]),
  // Only the keys of the files, not the files.
  columns('media_files', ['instance_id', 'id'], ['sealed_key'], row => [
    row.instance_id,
    mediaKeyPlace(row.instance_id, row.id),
  ]),
  columns('media_downloads', ['instance_id', 'media_id'], ['sealed_source'], row => [
    row.instance_id,
    mediaSourcePlace(row.instance_id, row.media_id),
  ]),
  columns('alert_targets', ['id'], ['address'], row => [ALERTS_SCOPE, alertAddressPlace(row.id)]),
  columns('connections', ['instance_id'], ['sealed_proxy'], row => [row.instance_id, proxyPlace(row.instance_id)]),
  columns('operator_endpoints', ['id'], ['secret', 'previous_secret'], row => [
    OPERATOR_SCOPE,
    operatorSecretPlace(row.id),
  ]),
]

/** Lets the compiler check the names of the columns. */
function columns<T extends keyof Database, K extends keyof Database[T] & string>(
  table: T,
  key: readonly K[],
  values: readonly (keyof Database[T] & string)[],
  sealedAs: (row: Record<K, string>) => SealedAs,
): SealedColumns {
  return { table, key, values, sealedAs }
}

/**
 * Re-encrypts every sealed value in several commits. Can be repeated: values already under the new key are left
 * unchanged.
 */
export class Resealing {
  readonly #backend: Backend
  readonly #statements: Statements
  readonly #from: Sealing
  readonly #to: Sealing
  readonly #onProgress: (done: number, total: number) => void
  #done = 0
  #unreadable = 0

  constructor(
    backend: Backend,
    statements: Statements,
    from: Sealing,
    to: Sealing,
    onProgress: (done: number, total: number) => void = () => undefined,
  ) {
    this.#backend = backend
    this.#statements = statements
    this.#from = from
    this.#to = to
    this.#onProgress = onProgress
  }

  async run(): Promise<Resealed> {
    const total = await this.#count()
    this.#onProgress(0, total)
    for (const sealed of SEALED) await this.#resealRows(sealed, total)
    return { values: this.#done, unreadable: this.#unreadable }
  }

  async #count(): Promise<number> {
    const { db } = this.#statements
    const counts = SEALED.map(
      ({ table, values }) => sql`(select count(${sql.ref(values[0]!)}) from ${sql.table(table)})`,
    )
    const count = sql<{ total: number }>`select ${sql.join(counts, sql` + `)} as total`
    const [row] = await this.#backend.reader.query<{ total: number }>({ compile: () => count.compile(db) })
    return Number(row?.total ?? 0)
  }

  /** Processes page after page in the order of the primary key, with one commit for each page. */
  async #resealRows(sealed: SealedColumns, total: number): Promise<void> {
    const { page, update } = this.#prepare(sealed)
    let after: Row = Object.fromEntries(sealed.key.map(name => [name, '']))
    for (;;) {
      const rows = await this.#backend.reader.run(page, after)
      const last = rows.at(-1)
      if (last === undefined) return
      const tx = await this.#backend.begin()
      try {
        await tx.each(
          update,
          rows.map(row => this.#resealRow(sealed, row)),
        )
        await tx.commit()
      } catch (error) {
        await tx.rollback()
        throw error
      }
      this.#done += rows.length
      this.#onProgress(this.#done, total)
      after = last
    }
  }

  #prepare({ table, key, values }: SealedColumns) {
    const statements = this.#statements
    const keyColumns = sql.join(key.map(name => sql.ref(name)))
    const page = statements.one((after: Row) => {
      const query = sql<Row>`select ${sql.join([...key, ...values].map(name => sql.ref(name)))} from ${sql.table(table)}
        where (${keyColumns}) > (${sql.join(key.map(name => after[name]))}) and ${sql.ref(values[0]!)} is not null
        order by ${keyColumns} limit ${sql.lit(STEP)}`
      return { compile: () => query.compile(statements.db) }
    })
    const typed = (names: readonly string[], type: 'text' | 'blob?') =>
      Object.fromEntries(names.map(name => [name, type])) as Record<never, typeof type>
    return { page, update: statements.update(table, typed(key, 'text'), typed(values, 'blob?')) }
  }

  #resealRow({ values, sealedAs }: SealedColumns, row: Row): Row {
    const resealed = { ...row }
    for (const name of values) {
      const sealed = row[name] as Uint8Array | null
      resealed[name] = sealed && this.#reseal(...sealedAs(row as Record<string, string>), sealed)
    }
    return resealed
  }

  #reseal(scope: string, place: string, sealed: Uint8Array): Uint8Array {
    const plain = this.#from.tryOpen(scope, place, sealed)
    if (plain !== null) return this.#to.seal(scope, place, plain)
    if (this.#to.tryOpen(scope, place, sealed) === null) this.#unreadable += 1
    return sealed
  }
}
