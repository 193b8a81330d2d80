import { parseArgs } from 'node:util'
import { createDatabase, STORES, type StoreKind } from '../database.ts'
import { startPostgres } from '../postgres.ts'
import { newSeed } from '../rig/random.ts'
import { type KillReport, runKills } from './kill-run.ts'

/** Kills the service under load for as long as one likes: `npm run test:crash -- --kills 200 --store sqlite`. */

const USAGE =
  'usage: npm run test:crash -- [--kills 100] [--seed N] [--store sqlite|postgres] [--instances 2] [--sandbox]'
/** Violations printed of each store; the rest is counted. */
const SHOWN = 20

interface Settings {
  kills: number
  seed: number
  stores: readonly StoreKind[]
  instances: number
  sandbox: boolean
}

function readSettings(): Settings {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(newSeed()) },
      store: { type: 'string' },
      instances: { type: 'string', default: '2' },
      sandbox: { type: 'boolean', default: false },
    },
  })
  const stores = values.store === undefined ? STORES : STORES.filter(store => store === values.store)
  const numbers = [values.kills, values.seed, values.instances].map(Number)
  if (stores.length === 0 || numbers.some(number => !Number.isInteger(number) || number < 0)) throw new Error(USAGE)
  const [kills = 0, seed = 0, instances = 0] = numbers
  return { kills, seed, stores, instances, sandbox: values.sandbox }
}

async function run(store: StoreKind, postgresUrl: string, settings: Settings): Promise<KillReport> {
  const database = await createDatabase(store, postgresUrl)
  try {
    return await runKills({ ...settings, database, say: line => console.log(`${store}: ${line}`) })
  } finally {
    await database.dispose()
  }
}

function show(store: StoreKind, { violations, lostIncoming, ...counts }: KillReport): boolean {
  for (const violation of violations.slice(0, SHOWN)) console.log(`${store}: BROKEN ${violation}`)
  for (const text of lostIncoming.slice(0, SHOWN))
    console.log(`${store}: BROKEN the incoming "${text}" was never told.`)
  const broken = violations.length + lostIncoming.length
  console.table({ [store]: { ...counts, durationMs: Math.round(counts.durationMs), broken } })
  return broken === 0
}

async function main(): Promise<boolean> {
  const settings = readSettings()
  console.log(`${settings.kills} kills of each store; repeat with --seed ${settings.seed}`)
  const postgres = settings.stores.includes('postgres') ? await startPostgres() : null
  try {
    let held = true
    for (const store of settings.stores) held = show(store, await run(store, postgres?.url ?? '', settings)) && held
    return held
  } finally {
    await postgres?.stop()
  }
}

try {
  if (!(await main())) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error && error.message === USAGE ? USAGE : error)
  process.exitCode = 1
}
