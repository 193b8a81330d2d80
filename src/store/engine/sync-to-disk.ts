import { closeSync, fsyncSync, openSync } from 'node:fs'

/** So that a file's bytes outlive a loss of power. */
export function syncFile(file: string): void {
  sync(file, 'r+')
}

/** So that the names in a folder outlive it as well. */
export function syncFolder(folder: string): void {
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
