import Sqlite from 'better-sqlite3'
import { StoreUnusable } from '../../errors.ts'

/** SQLite's error at a start as a sentence for the operator; any other error as it is. */
export function explained(error: unknown, path: string): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error
  const sentence = SENTENCES.find(([codes]) => codes.test(error.code))?.[1]
  return sentence === undefined ? error : new StoreUnusable(`${path} ${sentence} (${error.code})`, { cause: error })
}

const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [
    /^SQLITE_(CORRUPT|NOTADB)/,
    'is damaged, or is no database of SQLite: put it aside, with what lies beside it, and restore a backup. Nothing was changed.',
  ],
  [
    /^SQLITE_(READONLY|PERM|AUTH|CANTOPEN)/,
    'cannot be opened for writing: it and its folder must belong to the user who runs Pombal.',
  ],
  [
    /^SQLITE_(FULL|IOERR)/,
    'cannot be read or written: the disk is full, or refuses. What was committed is there; start again when it can.',
  ],
]
