import { mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { StoreUnusable } from '../../errors.ts'
import { giveToOwnerOf } from '../file-owner.ts'
import { syncFolder } from '../sync-to-disk.ts'
import { backUp } from './backup.ts'
import { DATABASE } from './database-files.ts'

const PREFIX = 'before-upgrade-'
const PRIVATE_FOLDER = 0o700

/**
 * Copies the database to `DATA_DIR/backups` before an upgrade changes it. If the upgrade fails and is tried again, no
 * second copy is made. A kill leaves the database as it was, and at most a file that the next start erases.
 * @returns the path of the copy
 * @throws StoreUnusable if the database cannot be copied
 */
export async function backUpBeforeUpgrade(dataDir: string, now: Date): Promise<string> {
  const folder = folderOf(dataDir)
  const source = join(dataDir, DATABASE)
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER })
    giveToOwnerOf(dataDir, folder)
    for (const name of listCopies(folder).filter(name => !name.endsWith('.db'))) rmSync(join(folder, name))
    writeLogBack(source)
    const earlier = listCopies(folder).map(name => join(folder, name))
    const complete = earlier.findLast(copy => isCopyOf(copy, source))
    if (complete !== undefined) return complete
    const { file } = await backUp(dataDir, now, stamp => join(folder, `${PREFIX}${stamp}.db`))
    giveToOwnerOf(dataDir, file)
    const { mtime } = statSync(source)
    utimesSync(file, mtime, mtime)
    return file
  } catch (error) {
    const reason = (error as Error).message.replace(/\.?$/, '.')
    throw new StoreUnusable(
      `The database was not upgraded, because it could not be copied to ${folder} first: ${reason}${remedyFor(error)}`,
      { cause: error },
    )
  }
}

/**
 * Call when an upgrade has succeeded.
 * @param copy the path of the copy of this upgrade, which is kept even if a clock that was ahead gave another one a later name
 * @param keep how many copies to keep, including `copy`; at least 1
 */
export function eraseOlderCopies(copy: string, keep: number): void {
  const folder = dirname(copy)
  const others = listCopies(folder).filter(name => name.endsWith('.db') && name !== basename(copy))
  // Names contain the time, so the oldest come first.
  for (const name of others.slice(0, Math.max(0, others.length - (keep - 1))))
    rmSync(join(folder, name), { force: true })
  syncFolder(folder)
}

function folderOf(dataDir: string): string {
  return join(dataDir, 'backups')
}

function listCopies(folder: string): string[] {
  return readdirSync(folder)
    .filter(name => name.startsWith(PREFIX))
    .toSorted()
}

/** Writes the log back, so that the time of the file shows whether the database has changed since the last copy. */
function writeLogBack(source: string): void {
  const database = new Sqlite(source)
  try {
    database.pragma('wal_checkpoint(TRUNCATE)')
  } finally {
    database.close()
  }
}

/** A copy has the size of the database's file, and gets the same time when it is complete. */
function isCopyOf(copy: string, source: string): boolean {
  const [one, other] = [copy, source].map(file => statSync(file, { throwIfNoEntry: false }))
  return one !== undefined && other !== undefined && one.size === other.size && +one.mtime === +other.mtime
}

/** Empty for a damaged database, because the reason already explains it, and for an error without a code. */
function remedyFor(error: unknown): string {
  const { code, cause } = error as NodeJS.ErrnoException
  const { code: actual = '' } = code === undefined && cause ? (cause as NodeJS.ErrnoException) : { code }
  if (actual === '' || /CORRUPT|NOTADB/.test(actual)) return ''
  const first = /FULL|ENOSPC|EDQUOT/.test(actual) ? 'Free some space there' : 'Correct this'
  return ` ${first}, or set UPGRADE_BACKUPS=0 if you have a backup of your own.`
}
