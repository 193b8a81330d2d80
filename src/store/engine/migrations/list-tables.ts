import { type Kysely, sql } from 'kysely'
import type { DatabaseKind } from '../database-kind.ts'
import type { Database } from '../schema/database.ts'

const QUERIES: Record<DatabaseKind, string> = {
  sqlite: `select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'`,
  postgres: 'select tablename as name from pg_tables where schemaname = current_schema()',
}

/** The names of all tables; on PostgreSQL those of the current schema. */
export async function listTables(db: Kysely<Database>, kind: DatabaseKind): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`${sql.raw(QUERIES[kind])}`.execute(db)
  return rows.map(({ name }) => name)
}
