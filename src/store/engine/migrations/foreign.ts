import { type Kysely, sql } from 'kysely'
import { ForeignDatabase } from '../../errors.ts'
import type { DatabaseKind } from '../database-kind.ts'
import type { Database } from '../schema/database.ts'
import { listTables } from './list-tables.ts'

/** @throws ForeignDatabase if the database has tables of another application */
export async function refuseForeign(
  db: Kysely<Database>,
  kind: DatabaseKind,
  ours: { first: string; table: string },
): Promise<void> {
  const tables = await listTables(db, kind)
  if (tables.includes(ours.table)) {
    const { rows } = await sql<{ name: string }>`select name from ${sql.table(ours.table)} limit 1000`.execute(db)
    if (rows.length > 0 && !rows.some(({ name }) => name === ours.first)) throw new ForeignDatabase()
  } else if (tables.some(IS_FOREIGN[kind])) {
    throw new ForeignDatabase()
  }
}

/** Tables of the first migrations. */
const NEEDED: readonly string[] = ['instances', 'connections', 'leases', 'messages', 'events', 'deliveries', 'meta']

/**
 * Whether a table belongs to another application, if there is no table of migrations. On SQLite any table does, because
 * the file is Pombal's own; on PostgreSQL only a table with a name that Pombal needs.
 */
const IS_FOREIGN: Record<DatabaseKind, (name: string) => boolean> = {
  sqlite: () => true,
  postgres: name => NEEDED.includes(name),
}
