import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { StoreUnusable } from '../../errors.ts'
import { lockDataDir } from './data-dir-lock.ts'
import { openSqlite } from './sqlite-backend.ts'
import { explained } from './unusable.ts'

interface VacuumReport {
  file: string
  bytesBefore: number
  bytesAfter: number
}

/**
 * Rewrites the database without its free pages, while the service is stopped. A kill at any point leaves all data in
 * place.
 * @throws StoreUnusable if there is no database or the disk is full; DataDirInUse while the service runs
 */
export function vacuum(dataDir: string): VacuumReport {
  const file = join(dataDir, 'pombal.db')
  if (!existsSync(file)) throw new StoreUnusable(`${file} does not exist: there is nothing to vacuum.`)
  const unlock = lockDataDir(dataDir)
  try {
    const database = openSqlite(file)
    try {
      // Also before the size is read, because the log may hold most of the data.
      database.pragma('wal_checkpoint(TRUNCATE)')
      const bytesBefore = statSync(file).size
      database.exec('vacuum')
      database.pragma('wal_checkpoint(TRUNCATE)')
      return { file, bytesBefore, bytesAfter: statSync(file).size }
    } finally {
      database.close()
    }
  } catch (error) {
    throw explained(error, file)
  } finally {
    unlock()
  }
}
