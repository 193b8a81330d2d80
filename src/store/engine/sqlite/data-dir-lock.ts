import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { DataDirInUse } from '../../errors.ts'

/**
 * Keeps a second process off the data folder: a transaction held open on a small database beside the real one, so that
 * the real one stays open to backups. The lock is the operating system's and goes with the process, however it ends.
 *
 * @returns lets go. Throws `DataDirInUse` while another process holds it.
 */
export function lockDataDir(dataDir: string): () => void {
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
