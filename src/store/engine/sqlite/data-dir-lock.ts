import { join, resolve } from 'node:path'
import Sqlite from 'better-sqlite3'
import { DataDirInUse } from '../../errors.ts'
import { giveToOwnerOf } from '../file-owner.ts'
import { refuseMoved } from './move-marker.ts'
import { explained } from './unusable.ts'

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

/**
 * Locks the folder for the move itself, even if the data was moved.
 * @throws DataDirInUse; StoreUnusable if the folder cannot be written to
 */
export function lockForMove(dataDir: string): () => void {
  // `vacuum` and large indexes need temporary files of the size of the data, and /tmp is often small, or in memory. SQLite reads
  // the variable when the process opens its first database, which is the lock.
  process.env['SQLITE_TMPDIR'] ??= resolve(dataDir)
  const file = join(dataDir, 'pombal.lock')
  let lock: Sqlite.Database | undefined
  try {
    lock = new Sqlite(file, { timeout: 0 })
    giveToOwnerOf(dataDir, file)
    lock.pragma('journal_mode = DELETE')
    lock.pragma('locking_mode = EXCLUSIVE')
    lock.exec('begin exclusive')
  } catch (error) {
    lock?.close()
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) throw new DataDirInUse(dataDir)
    throw explained(error, file)
  }
  const held = lock
  return () => held.close()
}
