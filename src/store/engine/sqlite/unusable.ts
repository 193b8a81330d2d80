import { accessSync, constants, existsSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { StoreUnusable } from '../../errors.ts'
import { SUFFIXES } from './database-files.ts'

/** Explains an SQLite error at start-up to the operator. Returns any other error unchanged. */
export function explained(error: unknown, path: string): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error
  const sentence = SENTENCES.find(([codes]) => codes.test(error.code))?.[1]
  return sentence === undefined ? error : new StoreUnusable(`${path} ${sentence} (${error.code})`, { cause: error })
}

/** @throws StoreUnusable if the user of this process may not write to the database or its log */
export function refuseReadOnlyFiles(path: string): void {
  for (const file of SUFFIXES.map(suffix => path + suffix).filter(file => existsSync(file))) {
    try {
      accessSync(file, constants.R_OK | constants.W_OK)
    } catch (error) {
      throw new StoreUnusable(`${file} ${NOT_WRITABLE} (${(error as NodeJS.ErrnoException).code})`, { cause: error })
    }
  }
}

/** True if a process was killed while it wrote without the write-ahead log, as the very first start does. */
export function isInterruptedWrite(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code === 'SQLITE_READONLY_ROLLBACK'
}

/** Restores the last commit, which a read-only connection cannot do. */
export function rollBackInterruptedWrite(path: string): void {
  const db = new Sqlite(path)
  try {
    db.pragma('schema_version')
  } finally {
    db.close()
  }
}

const NOT_WRITABLE = 'cannot be opened for writing. The file and its folder must belong to the user who runs Pombal.'

const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [
    /^SQLITE_(CORRUPT|NOTADB)/,
    'is damaged or is not an SQLite database. Restore an intact backup: "pombal restore" keeps the former files. Nothing was changed.',
  ],
  [/^SQLITE_(READONLY|PERM|AUTH|CANTOPEN)/, NOT_WRITABLE],
  [/^SQLITE_(BUSY|LOCKED)/, 'is in use by another program. Stop that program, or try again when it has finished.'],
  [
    /^SQLITE_(FULL|IOERR)/,
    'cannot be read or written. The disk is full or failing. Committed data is intact; start again when the disk works.',
  ],
]
