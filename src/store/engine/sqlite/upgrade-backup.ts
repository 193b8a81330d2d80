import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { StoreUnusable } from '../../errors.ts'
import { syncFolder } from '../sync-to-disk.ts'
import { backUp } from './backup.ts'
import { stampOf } from './database-files.ts'

const PREFIX = 'before-upgrade-'
const PRIVATE_FOLDER = 0o700

/**
 * Copies the database to `DATA_DIR/backups` before an upgrade changes it, and erases older copies of this kind. A kill leaves the
 * database as it was, and at most a file that the next start erases.
 * @param keep how many copies are kept, including this one
 * @returns the file
 * @throws StoreUnusable if there is no room for it
 */
export async function backUpBeforeUpgrade(dataDir: string, keep: number, now: Date): Promise<string> {
  const folder = join(dataDir, 'backups')
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER })
    const former = listCopies(folder)
    for (const name of former.filter(name => !name.endsWith('.db'))) rmSync(join(folder, name), { force: true })
    const { file } = await backUp(dataDir, freeName(folder, now))
    const copies = former.filter(name => name.endsWith('.db'))
    // The new copy is complete. Names contain the time, so the oldest come first.
    for (const name of copies.slice(0, Math.max(0, copies.length + 1 - keep))) rmSync(join(folder, name))
    syncFolder(folder)
    return file
  } catch (error) {
    const { message } = error as Error
    throw new StoreUnusable(
      `The database was not upgraded, because it could not be copied to ${folder} first: ${message} ` +
        'Make room there, or set UPGRADE_BACKUPS=0 if you have a backup of your own.',
      { cause: error },
    )
  }
}

function listCopies(folder: string): string[] {
  return readdirSync(folder)
    .filter(name => name.startsWith(PREFIX))
    .toSorted()
}

/** Two upgrades in one second have different names. */
function freeName(folder: string, now: Date): string {
  const names = new Set(readdirSync(folder))
  for (let moment = now.getTime(); ; moment += 1_000) {
    const name = `${PREFIX}${stampOf(new Date(moment))}.db`
    if (!names.has(name)) return join(folder, name)
  }
}
