import { existsSync, rmSync } from 'node:fs'

export const DATABASE = 'pombal.db'
/** The database and the files that SQLite keeps next to it: the write-ahead log, its index, and the rollback journal. */
export const SUFFIXES = ['', '-wal', '-shm', '-journal'] as const

/** A timestamp for file names, without characters that file systems refuse. */
function stampOf(moment: Date): string {
  return moment.toISOString().slice(0, 19).replaceAll(':', '-')
}

/** The first path that does not exist yet. @param pathAt makes it from a timestamp */
export function freePath(now: Date, pathAt: (stamp: string) => string): string {
  for (let moment = now.getTime(); ; moment += 1_000) {
    const path = pathAt(stampOf(new Date(moment)))
    if (!SUFFIXES.some(suffix => existsSync(path + suffix))) return path
  }
}

/** Erases a database with its log. */
export function eraseDatabase(file: string): void {
  for (const suffix of SUFFIXES) rmSync(file + suffix, { force: true })
}
