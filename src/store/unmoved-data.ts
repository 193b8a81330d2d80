import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { listTables } from './engine/migrations/list-tables.ts'
import type { Database } from './engine/schema/database.ts'
import { DATABASE } from './engine/sqlite/database-files.ts'
import { readMoveMarker } from './engine/sqlite/move-marker.ts'
import { UnmovedData } from './errors.ts'

/**
 * Refuses a PostgreSQL database without instances if the data folder has a SQLite database that was not moved. Otherwise
 * `DATABASE_URL` alone would start an empty service, and what is queued on SQLite would never be sent.
 * @throws UnmovedData
 */
export async function refuseUnmovedData(db: Kysely<Database>, dataDir: string): Promise<void> {
  const file = join(dataDir, DATABASE)
  if (!existsSync(file) || readMoveMarker(dataDir)?.state === 'moved') return
  if ((await listTables(db, 'postgres')).includes('instances')) {
    const instance = await db.selectFrom('instances').select('id').limit(1).executeTakeFirst()
    if (instance !== undefined) return
  }
  throw new UnmovedData(file)
}
