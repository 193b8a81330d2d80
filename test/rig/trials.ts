import { createDatabase, STORES, type StoreKind, type TestDatabase } from '../databases/database.ts'
import { startPostgres } from '../databases/postgres.ts'

/** A test run on a new database. @returns whether every guarantee held */
export type Trial = (database: TestDatabase, store: StoreKind) => Promise<boolean>

/** The stores that `--store` selects: all without the option, none if the name is unknown. */
export function parseStores(name: string | undefined): readonly StoreKind[] {
  return name === undefined ? STORES : STORES.filter(store => store === name)
}

/** Runs every trial on every store, one after the other. @returns whether every guarantee held */
export async function runTrials(stores: readonly StoreKind[], trials: readonly Trial[]): Promise<boolean> {
  const postgres = stores.includes('postgres') ? await startPostgres() : null
  let held = true
  try {
    for (const store of stores) {
      for (const trial of trials) held = (await runTrial(store, postgres?.url ?? '', trial)) && held
    }
  } finally {
    await postgres?.stop()
  }
  return held
}

async function runTrial(store: StoreKind, postgresUrl: string, trial: Trial): Promise<boolean> {
  const database = await createDatabase(store, postgresUrl)
  try {
    return await trial(database, store)
  } finally {
    await database.dispose()
  }
}
