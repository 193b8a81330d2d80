import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/** The name of the file that contains the ID. */
export const ID_FILE = 'folder.id'

/**
 * No folder has this ID. It stands for a folder of stored files without a recorded ID that was not mounted at the start, or could
 * not be written to.
 */
export const NOT_MOUNTED = 'not mounted at the start'

/** Each instance has a directory, which is named after its ID. */
const INSTANCE = /^inst_/

/** What the database knows about the folder. */
export interface FolderRecords {
  findFolder(): Promise<{ id: string | null; hasStored: boolean; hasBytes: boolean; hasNodes: boolean }>
  recordFolder(id: string, former: string | null): Promise<string>
}

/**
 * The ID that the folder of files must have: the one that the database keeps. While no file can be in it and no other node runs, the
 * folder that is there gets an ID, and the database keeps that. Null: no file is stored, and the folder cannot be written to yet.
 */
export async function claimFolder(root: string, records: FolderRecords): Promise<string | null> {
  const { id, hasStored, hasBytes, hasNodes } = await records.findFolder()
  if (id !== null && (hasBytes || hasNodes)) return id
  // A folder that is not mounted must not become the folder of the files.
  if (hasStored && !hasInstances(root)) return NOT_MOUNTED
  const found = identifyFolder(root)
  if (found === null) return hasStored ? NOT_MOUNTED : null
  return records.recordFolder(found, id)
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
    // Empty while another node writes it.
    return readFileSync(path, 'utf8').trim() || null
  } catch {
    return null
  }
}

/** Whether the folder contains the directory of an instance. False also for a folder that is missing or cannot be read. */
export function hasInstances(root: string): boolean {
  try {
    return readdirSync(root, { withFileTypes: true }).some(entry => entry.isDirectory() && INSTANCE.test(entry.name))
  } catch {
    return false
  }
}

/** @throws if another node was quicker, or the folder cannot be written to */
function createIdFile(root: string, path: string): void {
  const id = randomBytes(8).toString('hex')
  const draft = `${path}.${id}`
  mkdirSync(root, { recursive: true, mode: 0o700 })
  try {
    writeFileSync(draft, id, { mode: 0o600, flush: true })
    appear(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

function appear(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error
    // A file system without links. A rename would replace the file of another node.
    copyNew(draft, path)
  }
}

function copyNew(from: string, to: string): void {
  try {
    copyFileSync(from, to, constants.COPYFILE_EXCL)
    const file = openSync(to, 'r+')
    fsyncSync(file)
    closeSync(file)
  } catch (error) {
    // An empty file would look like one that another node is writing.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(to, { force: true })
    throw error
  }
}
