import { parseArgs } from 'node:util'
import { createDatabase, STORES, type StoreKind } from '../database.ts'
import { startPostgres } from '../postgres.ts'
import { newSeed } from '../rig/random.ts'
import { runFrameKills } from './frame-kills.ts'
import { type KillReport, runKills } from './kill-run.ts'

/**
 * Kills the service under load, and between any two stanzas of a send and a receive, for as long as one likes:
 * `npm run test:crash -- --kills 200 --store sqlite`.
 */

const USAGE =
  'usage: npm run test:crash -- [--kills 100] [--frame-kills 200] [--seed N] [--store sqlite|postgres] [--instances 2] [--sandbox]'
/** Violations printed of each store; the rest is counted. */
const SHOWN = 20

interface Settings {
  kills: number
  frameKills: number
  seed: number
  stores: readonly StoreKind[]
  instances: number
  sandbox: boolean
}

function readSettings(): Settings {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '100' },
      'frame-kills': { type: 'string', default: '200' },
      seed: { type: 'string', default: String(newSeed()) },
      store: { type: 'string' },
      instances: { type: 'string', default: '2' },
      sandbox: { type: 'boolean', default: false },
    },
  })
  const stores = values.store === undefined ? STORES : STORES.filter(store => store === values.store)
  const numbers = [values.kills, values['frame-kills'], values.seed, values.instances].map(Number)
  if (stores.length === 0 || numbers.some(number => !Number.isInteger(number) || number < 0)) throw new Error(USAGE)
  const [kills = 0, frameKills = 0, seed = 0, instances = 0] = numbers
  return { kills, frameKills, seed, stores, instances, sandbox: values.sandbox }
}

async function run(store: StoreKind, postgresUrl: string, settings: Settings): Promise<KillReport> {
  const database = await createDatabase(store, postgresUrl)
  try {
    return await runKills({ ...settings, database, say: line => console.log(`${store}: ${line}`) })
  } finally {
    await database.dispose()
  }
}

/** @returns whether all held */
async function runBetweenStanzas(store: StoreKind, postgresUrl: string, settings: Settings): Promise<boolean> {
  const { frameKills: kills, seed } = settings
  const database = await createDatabase(store, postgresUrl)
  try {
    const say = (line: string) => console.log(`${store}: between stanzas, ${line}`)
    const violations = await runFrameKills({ database, kills, seed, say })
    for (const violation of violations) console.log(`${store}: BROKEN ${violation}`)
    console.table({ [store]: { 'kills between stanzas': kills, broken: violations.length } })
    return violations.length === 0
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
  const { kills, frameKills, seed } = settings
  console.log(`${kills} kills under load and ${frameKills} between stanzas on each store; repeat with --seed ${seed}`)
  const postgres = settings.stores.includes('postgres') ? await startPostgres() : null
  try {
    let held = true
    for (const store of settings.stores) {
      const url = postgres?.url ?? ''
      if (kills > 0) held = show(store, await run(store, url, settings)) && held
      if (frameKills > 0) held = (await runBetweenStanzas(store, url, settings)) && held
    }
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
