import { existsSync, linkSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { KeyCheck } from '../../encryption/key-check.ts'
import { Sealing } from '../../encryption/sealing.ts'
import { KeyRotationUnfinished, StoreUnusable, WrongMasterKey } from '../../errors.ts'
import { giveToOwnerOf } from '../file-owner.ts'
import { isMigrated, refuseIncompatible } from '../migrations/migrate.ts'
import type { Database } from '../schema/database.ts'
import { syncFolder } from '../sync-to-disk.ts'
import { copyDatabase, hasTwoKeys, refuseDamaged } from './backup.ts'
import { lockDataDir } from './data-dir-lock.ts'
import { DATABASE, eraseDatabase, freePath, SUFFIXES } from './database-files.ts'

/** The copy of the backup, until it replaces the database. */
const DRAFT = `${DATABASE}.restored`
/** The former database, until the restored one is in place. */
const FORMER = `${DATABASE}.former`

interface Restored {
  former: readonly string[]
  hasTwoKeys: boolean
}

interface RestoreOptions {
  dataDir: string
  /** The file to restore. */
  backup: string
  /** Null if it is not known. The backup is then not compared with it. */
  masterKey: Uint8Array | null
  now: Date
}

/**
 * Replaces the database with a backup and keeps the former database under another name. The service must be stopped. A
 * restore that is killed leaves this behind:
 *
 * | killed … | leaves |
 * |---|---|
 * | before the former database is kept | the former database, complete |
 * | before the backup is in place | the former database with a second name; or no database, if it cannot be read or linked, or did not exist. Without a database, the service does not start until a restore has finished |
 * | after it is in place | the restored database; the next start or restore gives the former one its final name |
 *
 * @returns the paths of the former database's files, none if there were none; and whether the backup was made during a
 * rotation of the master key, which must be finished with both keys
 * @throws StoreUnusable if the backup is damaged, is not one of Pombal, has another master key, or belongs to an unfinished restore;
 * DataDirInUse while the service runs
 */
export async function restore({ dataDir, backup, masterKey, now }: RestoreOptions): Promise<Restored> {
  refuseWrongFile(dataDir, backup)
  const unlock = lockDataDir(dataDir)
  const file = join(dataDir, DATABASE)
  const draft = join(dataDir, DRAFT)
  try {
    completeRestore(dataDir, now)
    eraseDatabase(draft)
    await copyDatabase(backup, draft)
    giveToOwnerOf(dataDir, draft)
    refuseDamaged(draft)
    await refuseUnusable(draft, backup, masterKey)
    keepFormer(file, join(dataDir, FORMER))
    syncFolder(dataDir)
    renameSync(draft, file)
    syncFolder(dataDir)
    const former = completeRestore(dataDir, now)
    refuseDamaged(file)
    return { former, hasTwoKeys: hasTwoKeys(file) }
  } finally {
    // Without a database the draft stays, so that the service does not start.
    if (existsSync(file)) eraseDatabase(draft)
    unlock()
  }
}

/**
 * Completes a restore that has put the backup in place, and undoes one that has not. Requires the lock of the data folder.
 * @returns the files of the former database
 */
export function completeRestore(dataDir: string, now: Date): string[] {
  const file = join(dataDir, DATABASE)
  const former = join(dataDir, FORMER)
  if (!existsSync(file)) return []
  eraseDatabase(join(dataDir, DRAFT))
  // A second name of the database itself: the backup has not replaced it.
  if (existsSync(former) && statSync(former).ino === statSync(file).ino) eraseDatabase(former)
  const suffixes = SUFFIXES.filter(suffix => existsSync(former + suffix))
  if (suffixes.length === 0) return []
  const kept = freePath(now, stamp => `${file}.before-${stamp}`)
  for (const suffix of suffixes) renameSync(former + suffix, kept + suffix)
  syncFolder(dataDir)
  return suffixes.map(suffix => kept + suffix)
}

/** @throws StoreUnusable if a restore was killed while there was no database: a start would create an empty one */
export function refuseUnfinishedRestore(dataDir: string): void {
  if (existsSync(join(dataDir, DATABASE))) return
  const left = [DRAFT, FORMER].map(name => join(dataDir, name)).filter(path => existsSync(path))
  if (left.length === 0) return
  throw new StoreUnusable(
    `A restore was not finished: run "pombal restore" again. To start with an empty database instead, move ${left.join(' and ')} away.`,
  )
}

/** @throws StoreUnusable unless `backup` is a file that the restore itself does not erase or rename */
function refuseWrongFile(dataDir: string, backup: string): void {
  const found = statSync(backup, { bigint: true, throwIfNoEntry: false })
  if (found === undefined) throw new StoreUnusable(`${backup} does not exist: check the path.`)
  if (found.isDirectory()) throw new StoreUnusable(`${backup} is a folder: name the file of the backup in it.`)
  for (const name of [DRAFT, FORMER].flatMap(name => SUFFIXES.map(suffix => name + suffix))) {
    const own = statSync(join(dataDir, name), { bigint: true, throwIfNoEntry: false })
    if (own?.dev === found.dev && own.ino === found.ino)
      throw new StoreUnusable(
        `${backup} belongs to a restore that was not finished, and another restore would replace it: rename it first. Nothing was changed.`,
      )
  }
}

/** @throws StoreUnusable unless Pombal could start on it */
async function refuseUnusable(draft: string, backup: string, masterKey: Uint8Array | null): Promise<void> {
  const database = new Sqlite(draft, { readonly: true })
  const db = new Kysely<Database>({ dialect: new SqliteDialect({ database }) })
  try {
    await refuseIncompatible(db, 'sqlite')
    if (!(await isMigrated(db, 'sqlite'))) throw new StoreUnusable(`${backup} contains no data of Pombal.`)
    if (masterKey !== null) await new KeyCheck(new Sealing(masterKey)).verify(db, 'sqlite')
  } catch (error) {
    // The rotation can be finished after the restore.
    if (error instanceof KeyRotationUnfinished) return
    if (!(error instanceof WrongMasterKey)) throw error
    throw new StoreUnusable(
      `The master key does not match ${backup}. Make a copy of the present key first. Then put the key that was in use when the backup was made in its place.`,
    )
  } finally {
    await db.destroy()
  }
}

/**
 * Gives the database a second name, so that the backup can replace it in one step. SQLite would apply a log that is left under
 * the old name to the restored database. The log is therefore written back or renamed first.
 */
function keepFormer(file: string, former: string): void {
  const isLinked = existsSync(file) && writeLogBack(file) && link(file, former)
  const moved = SUFFIXES.filter(suffix => !(isLinked && suffix === '') && existsSync(file + suffix))
  for (const suffix of moved) renameSync(file + suffix, former + suffix)
}

/** @returns false if SQLite cannot read the database. @throws StoreUnusable if another process uses it, such as a backup */
function writeLogBack(file: string): boolean {
  try {
    const database = new Sqlite(file)
    try {
      database.pragma('schema_version')
      database.pragma('wal_checkpoint(TRUNCATE)')
    } finally {
      database.close()
    }
  } catch (error) {
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) throw inUse(file)
    return false
  }
  // The last connection erases the log.
  if (existsSync(`${file}-wal`)) throw inUse(file)
  return true
}

/** @returns false on a file system without links */
function link(file: string, name: string): boolean {
  try {
    linkSync(file, name)
    return true
  } catch {
    return false
  }
}

function inUse(file: string): StoreUnusable {
  return new StoreUnusable(`Another program, such as a backup, has opened ${file}. Stop it first. Nothing was changed.`)
}
