import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The name of the file that contains the ID. */
export const ID_FILE = 'folder.id'

/** What the database knows about the folder. */
export interface FolderRecords {
  findFolder(): Promise<{ id: string | null; hasStored: boolean; hasNodes: boolean }>
  recordFolder(id: string, former: string | null): Promise<string>
}

/**
 * The ID that the folder of files must have: the one that the database keeps. While no file is stored and no other node runs, the
 * folder that is there gets an ID, and the database keeps that. Null: the folder cannot be written to yet.
 */
export async function claimFolder(root: string, records: FolderRecords): Promise<string | null> {
  const { id, hasStored, hasNodes } = await records.findFolder()
  if (id !== null && (hasStored || hasNodes)) return id
  // A folder that is not mounted must not become the folder of the files. No folder has the returned ID.
  if (hasStored && isEmpty(root)) return newId()
  const found = identifyFolder(root)
  return found === null ? null : records.recordFolder(found, id)
}

/** The ID in the file of that folder, which is created if it is missing. Null if the file can be neither read nor created. */
export function identifyFolder(root: string): string | null {
  const path = join(root, ID_FILE)
  try {
    if (!existsSync(path)) createIdFile(root, path)
  } catch {
    // The ID of the other node is read.
  }
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}

/** True also for a folder that is missing or cannot be read. */
export function isEmpty(root: string): boolean {
  try {
    return readdirSync(root).length === 0
  } catch {
    return true
  }
}

function newId(): string {
  return randomBytes(8).toString('hex')
}

/** @throws if another node was quicker */
function createIdFile(root: string, path: string): void {
  const draft = `${path}.${newId()}`
  mkdirSync(root, { recursive: true, mode: 0o700 })
  try {
    writeFileSync(draft, newId(), { mode: 0o600 })
    appear(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

/** @throws if another node was quicker */
function appear(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error
    // A file system without links.
    renameSync(draft, path)
  }
}
