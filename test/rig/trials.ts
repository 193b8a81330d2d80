import { createDatabase, STORES, type StoreKind, type TestDatabase } from '../database.ts'
import { startPostgres } from '../postgres.ts'

/** What is tried on a new database. @returns whether every promise held */
export type Trial = (database: TestDatabase, store: StoreKind) => Promise<boolean>

/** What `--store` names: every store where it is not given, none where it is no store. */
export function storesNamed(name: string | undefined): readonly StoreKind[] {
  return name === undefined ? STORES : STORES.filter(store => store === name)
}

/** Every trial on every store, one after the other. @returns whether every promise held */
export async function tryOn(stores: readonly StoreKind[], trials: readonly Trial[]): Promise<boolean> {
  const postgres = stores.includes('postgres') ? await startPostgres() : null
  let held = true
  try {
    for (const store of stores) {
      for (const trial of trials) held = (await tryOnNew(store, postgres?.url ?? '', trial)) && held
    }
  } finally {
    await postgres?.stop()
  }
  return held
}

async function tryOnNew(store: StoreKind, postgresUrl: string, trial: Trial): Promise<boolean> {
  const database = await createDatabase(store, postgresUrl)
  try {
    return await trial(database, store)
  } finally {
    await database.dispose()
  }
}
