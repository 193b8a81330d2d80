import { closeSync, existsSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { ROTATION_KEY } from '../../encryption/key-check.ts'
import { KeyRotationUnfinished, StoreUnusable } from '../../errors.ts'
import { syncFile, syncFolder } from '../sync-to-disk.ts'
import { DATABASE, eraseDatabase, freePath } from './database-files.ts'
import { refuseMoved } from './move-marker.ts'
import { explained } from './unusable.ts'

/** Copies all pages in one step. A backup in several steps restarts after every write in between. */
const ALL_PAGES = 0x7fff_ffff

const PRIVATE_FILE = 0o600

/** A run that still writes or checks its draft has written to it more recently. Shorter than the time between daily backups. */
const DRAFT_LEFT_AFTER_MS = 12 * 3_600_000

interface BackupReport {
  file: string
  bytes: number
}

/**
 * Makes a consistent copy of the database, without blocking a running service. The file appears under its name only once it is
 * complete, checked and synced. It does not contain the master key.
 * @param pathAt makes the path from a timestamp; a later one is used if the path is taken, even by a backup in progress
 * @throws StoreUnusable if there is no database, or the copy is damaged; DataMoved if the data is in PostgreSQL;
 * KeyRotationUnfinished if the values of the copy are under two keys
 */
export async function backUp(dataDir: string, now: Date, pathAt: (stamp: string) => string): Promise<BackupReport> {
  refuseMoved(dataDir)
  const source = join(dataDir, DATABASE)
  if (!existsSync(source)) throw new StoreUnusable(`${source} does not exist: there is nothing to back up.`)
  const { file, draft } = createDraft(now, pathAt)
  try {
    await copyDatabase(source, draft)
    refuseDamaged(draft)
    if (hasTwoKeys(draft)) throw new KeyRotationUnfinished()
    renameSync(draft, file)
    syncFolder(dirname(file))
  } finally {
    eraseDatabase(draft)
  }
  return { file, bytes: statSync(file).size }
}

/**
 * Erases the drafts that killed runs of `pombal backup` left in the folder.
 * @throws Error of the file system, for example if a draft belongs to another user
 */
export function eraseLeftDrafts(folder: string, now: Date): void {
  for (const name of readdirSync(folder)) {
    if (!/^pombal-[\d-]+T[\d-]+\.db\.partial$/.test(name)) continue
    const draft = join(folder, name)
    const found = statSync(draft, { throwIfNoEntry: false })
    if (found !== undefined && now.getTime() - found.mtimeMs > DRAFT_LEFT_AFTER_MS) eraseDatabase(draft)
  }
}

/** Reserves the first free path by an empty draft, which no other backup has. */
function createDraft(now: Date, pathAt: (stamp: string) => string): { file: string; draft: string } {
  for (let moment = now.getTime(); ; moment += 1_000) {
    const file = freePath(new Date(moment), pathAt)
    const draft = `${file}.partial`
    if (!createNew(draft)) continue
    if (!existsSync(file)) return { file, draft }
    // Another backup has finished in between.
    rmSync(draft)
  }
}

/** @returns false if the file exists */
function createNew(file: string): boolean {
  try {
    closeSync(openSync(file, 'wx', PRIVATE_FILE))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

/**
 * Copies a database, including the content of its log, to a single file without a log.
 * @throws StoreUnusable that names the file that cannot be read or written
 */
export async function copyDatabase(from: string, to: string): Promise<void> {
  let source: Sqlite.Database | undefined
  try {
    source = new Sqlite(from, { readonly: true })
    // Only this makes SQLite open the files.
    source.pragma('schema_version')
  } catch (error) {
    source?.close()
    throw explained(error, from)
  }
  try {
    await source.backup(to, { progress: () => ALL_PAGES })
    const database = new Sqlite(to)
    database.pragma('journal_mode = DELETE')
    database.close()
    syncFile(to)
  } catch (error) {
    throw explained(error, isDamage(error) ? from : to)
  } finally {
    source.close()
  }
}

/** @throws StoreUnusable */
export function refuseDamaged(file: string): void {
  try {
    const database = new Sqlite(file, { readonly: true })
    try {
      const found = database.pragma('integrity_check(1)', { simple: true })
      if (found !== 'ok') throw new StoreUnusable(`${file} is a copy of a damaged database: ${found}`)
    } finally {
      database.close()
    }
  } catch (error) {
    throw explained(error, file)
  }
}

/** Whether the database is in the middle of a rotation of the master key, so that its values may be under two keys. */
export function hasTwoKeys(file: string): boolean {
  const database = new Sqlite(file, { readonly: true })
  try {
    const hasMeta = database.prepare("select 1 from sqlite_schema where name = 'meta'").get() !== undefined
    return hasMeta && database.prepare('select 1 from meta where key = ?').get(ROTATION_KEY) !== undefined
  } finally {
    database.close()
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)
}
