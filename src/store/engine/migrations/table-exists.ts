import { type Kysely, sql } from 'kysely'
import type { Database, DatabaseKind } from '../schema/database.ts'

/** Whether the table exists; on PostgreSQL in the current schema. */
export async function tableExists(db: Kysely<Database>, kind: DatabaseKind, table: string): Promise<boolean> {
  const found =
    kind === 'postgres'
      ? sql`select 1 from pg_tables where schemaname = current_schema() and tablename = ${table}`
      : sql`select 1 from sqlite_master where type = 'table' and name = ${table}`
  const { rows } = await found.execute(db)
  return rows.length > 0
}
