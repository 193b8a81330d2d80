import { chownSync, statSync } from 'node:fs'

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
