import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { DataDirInUse } from '../../errors.ts'
import { refuseMoved } from './move-marker.ts'

/**
 * Locks the data folder against a second process by an open transaction on a separate small database. The real database stays
 * accessible to backups. The operating system releases the lock when the process ends, however it ends.
 * @returns a function that releases the lock
 * @throws DataDirInUse while another process holds it; DataMoved if the data was moved to PostgreSQL
 */
export function lockDataDir(dataDir: string): () => void {
  const unlock = lockForMove(dataDir)
  try {
    refuseMoved(dataDir)
  } catch (error) {
    unlock()
    throw error
  }
  return unlock
}

/** The same for the move itself. @throws DataDirInUse */
export function lockForMove(dataDir: string): () => void {
  const lock = new Sqlite(join(dataDir, 'pombal.lock'), { timeout: 0 })
  try {
    lock.pragma('journal_mode = DELETE')
    lock.pragma('locking_mode = EXCLUSIVE')
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) throw new DataDirInUse(dataDir)
    throw error
  }
  return () => lock.close()
}
