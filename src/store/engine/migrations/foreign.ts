import { type Kysely, sql } from 'kysely'
import { ForeignDatabase } from '../../errors.ts'
import type { Database, DatabaseKind } from '../schema/database.ts'

/**
 * Refuses a database with tables of another application: any table on SQLite, since the file is Pombal's own; on PostgreSQL
 * only tables whose names Pombal needs.
 * @throws ForeignDatabase
 */
export async function refuseForeign(
  db: Kysely<Database>,
  kind: DatabaseKind,
  ours: { first: string; table: string },
): Promise<void> {
  const tables = await listTables(db, kind)
  if (tables.includes(ours.table)) {
    const { rows } = await sql<{ name: string }>`select name from ${sql.table(ours.table)} limit 1000`.execute(db)
    if (rows.length > 0 && !rows.some(({ name }) => name === ours.first)) throw new ForeignDatabase()
  } else if (kind === 'sqlite' ? tables.length > 0 : tables.some(name => NEEDED.includes(name))) {
    throw new ForeignDatabase()
  }
}

/** Tables of the first migrations. */
const NEEDED: readonly string[] = ['instances', 'connections', 'leases', 'messages', 'events', 'deliveries', 'meta']

async function listTables(db: Kysely<Database>, kind: DatabaseKind): Promise<string[]> {
  const query =
    kind === 'postgres'
      ? sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`
      : sql<{
          name: string
        }>`select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'`
  return (await query.execute(db)).rows.map(({ name }) => name)
}
