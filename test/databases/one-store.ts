import { createHash } from 'node:crypto'
import { relative } from 'node:path'
import { expect } from 'vitest'
import { STORES, type StoreKind } from './database.ts'

/**
 * The store for the flows of this test file. The contract tests run every operation on both stores, so one is enough for
 * a flow: about half of the files get SQLite, the others PostgreSQL. `npm run test:all` runs all of them on both.
 */
export const ONE_STORE: readonly StoreKind[] = process.env['ALL_STORES'] === '1' ? STORES : [storeOfThisFile()]

function storeOfThisFile(): StoreKind {
  const file = relative(import.meta.dirname, expect.getState().testPath ?? '')
  return (createHash('sha256').update(file).digest()[0] as number) % 2 === 0 ? 'sqlite' : 'postgres'
}
