import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The name of the file that contains the ID. */
export const ID_FILE = 'folder.id'

/**
 * The ID of the folder of files, from a file in that folder, which the first node creates. Two nodes that name the same
 * path see the same folder only if they read the same ID. Null if the file can be neither read nor created, for example
 * because the file system has no hard links.
 */
export function identifyFolder(root: string): string | null {
  const path = join(root, ID_FILE)
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  try {
    if (!existsSync(path)) {
      mkdirSync(root, { recursive: true, mode: 0o700 })
      writeFileSync(draft, randomBytes(8).toString('hex'), { mode: 0o600 })
      // Fails if another node was quicker.
      linkSync(draft, path)
    }
  } catch {
    // The ID of the other node is read.
  } finally {
    rmSync(draft, { force: true })
  }
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
