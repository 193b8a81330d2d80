import { chownSync, existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, sep } from 'node:path'

const ROOT = 0

/**
 * Gives a file or folder that root has created to the owner of the data folder. Otherwise a command that root runs would leave
 * files that the service, which runs as another user, cannot open. Does nothing for any other user.
 */
export function giveToOwnerOf(dataDir: string, path: string): void {
  if (process.getuid?.() !== ROOT) return
  const { uid, gid } = statSync(dataDir)
  chownSync(path, uid, gid)
}

/** As `giveToOwnerOf`, for a path that an operator has named and its folders. Changes nothing outside the data folder. */
export function giveIfInside(dataDir: string, path: string): void {
  if (process.getuid?.() !== ROOT || !existsSync(dataDir)) return
  const root = realpathSync(dataDir)
  for (let at = realpathSync(path); at.startsWith(root + sep); at = dirname(at)) giveToOwnerOf(dataDir, at)
}
