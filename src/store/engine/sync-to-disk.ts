import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Makes the content of a file survive a power failure. */
export function syncFile(file: string): void {
  sync(file, 'r+')
}

/** Makes the entries of a folder survive a power failure. */
export function syncFolder(folder: string): void {
  // Windows cannot sync a folder: it answers EPERM.
  if (process.platform === 'win32') return
  sync(folder, 'r')
}

function sync(path: string, flags: 'r' | 'r+'): void {
  const descriptor = openSync(path, flags)
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
