import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { StoreUnusable } from '../../errors.ts'
import { syncFile, syncFolder } from '../sync-to-disk.ts'
import { lockDataDir } from './data-dir-lock.ts'
import { explained } from './unusable.ts'

/** Copies all pages in one step. A backup in several steps restarts after every write in between. */
const ALL_PAGES = 0x7fff_ffff
const DATABASE = 'pombal.db'
/** The suffixes of the write-ahead log's files, which SQLite keeps next to the database. */
const LOG_SUFFIXES = ['-wal', '-shm'] as const

interface BackupReport {
  file: string
  bytes: number
}

/**
 * Makes a consistent copy of the database, without blocking a running service. The file appears under its name only once it is
 * complete, checked and synced. It does not contain the master key.
 * @throws StoreUnusable if there is no database, `file` exists, or the copy is damaged
 */
export async function backUp(dataDir: string, file: string): Promise<BackupReport> {
  const source = join(dataDir, DATABASE)
  if (!existsSync(source)) throw new StoreUnusable(`${source} does not exist: there is nothing to back up.`)
  if (existsSync(file)) throw new StoreUnusable(`${file} exists already: choose another folder.`)
  const draft = `${file}.partial`
  try {
    await copy(source, draft)
    check(draft)
    renameSync(draft, file)
    syncFolder(dirname(file))
  } catch (error) {
    throw explained(error, file)
  } finally {
    remove(draft)
  }
  return { file, bytes: statSync(file).size }
}

/**
 * Replaces the database with a backup and keeps the former database under another name. The service must be stopped.
 * @returns the path of the former database; null if there was none
 * @throws StoreUnusable if the backup is damaged; DataDirInUse while the service runs
 */
export async function restore(dataDir: string, backup: string, now: Date): Promise<string | null> {
  const unlock = lockDataDir(dataDir)
  try {
    if (!existsSync(backup)) throw new StoreUnusable(`${backup} does not exist: check the path.`)
    const file = join(dataDir, DATABASE)
    const draft = `${file}.restored`
    // A kill at any point leaves a complete database in place, or the former one renamed; never a partial one.
    remove(draft)
    await copy(backup, draft)
    check(draft)
    const former = existsSync(file) ? renameDatabase(file, `${file}.before-${stampOf(now)}`) : null
    renameSync(draft, file)
    syncFolder(dataDir)
    return former
  } catch (error) {
    throw explained(error, backup)
  } finally {
    unlock()
  }
}

/** A timestamp for file names, without characters that file systems refuse. */
export function stampOf(moment: Date): string {
  return moment.toISOString().slice(0, 19).replaceAll(':', '-')
}

async function copy(from: string, to: string): Promise<void> {
  const source = new Sqlite(from, { readonly: true })
  try {
    await source.backup(to, { progress: () => ALL_PAGES })
  } finally {
    source.close()
  }
  // Converts the copy to a single file without a write-ahead log.
  const database = new Sqlite(to)
  database.pragma('journal_mode = DELETE')
  database.close()
  syncFile(to)
}

function check(file: string): void {
  const database = new Sqlite(file, { readonly: true })
  try {
    const found = database.pragma('integrity_check', { simple: true })
    if (found !== 'ok') throw new StoreUnusable(`The copy of the database is damaged: ${found}`)
  } finally {
    database.close()
  }
}

/** Renames the log first. SQLite would apply a log under the old name to the restored database. */
function renameDatabase(file: string, name: string): string {
  for (const suffix of [...LOG_SUFFIXES, '']) {
    if (existsSync(file + suffix)) renameSync(file + suffix, name + suffix)
  }
  return name
}

function remove(file: string): void {
  for (const suffix of ['', ...LOG_SUFFIXES, '-journal']) rmSync(file + suffix, { force: true })
}
