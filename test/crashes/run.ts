import { readOptions } from '../../scripts/command-line.ts'
import type { StoreKind } from '../databases/database.ts'
import { newSeed } from '../rig/random.ts'
import { parseStores, runTrials, type Trial } from '../rig/trials.ts'
import { type KillReport, runKills } from './kill-run.ts'
import { runStanzaKills } from './stanza-kills.ts'

/**
 * Kills the service under load, and between any two stanzas of a send and a receive:
 * `npm run test:crash -- --kills 200 --store sqlite`.
 */

const USAGE =
  'usage: npm run test:crash -- [--kills 100] [--stanza-kills 200] [--seed N] [--store sqlite|postgres] [--instances 2] [--sandbox] [--reliable-network] [--logs FOLDER]'
/** Violations printed of each store; the rest is counted. */
const SHOWN = 20

interface Settings {
  kills: number
  stanzaKills: number
  seed: number
  stores: readonly StoreKind[]
  instances: number
  sandbox: boolean
  /** Without network faults. */
  reliableNetwork: boolean
  logs: string | undefined
}

/** Null if an argument is invalid. */
function readSettings(): Settings | null {
  const { values } = readOptions(USAGE, {
    kills: { type: 'string', default: '100' },
    'stanza-kills': { type: 'string', default: '200' },
    seed: { type: 'string', default: String(newSeed()) },
    store: { type: 'string' },
    instances: { type: 'string', default: '2' },
    sandbox: { type: 'boolean', default: false },
    'reliable-network': { type: 'boolean', default: false },
    logs: { type: 'string' },
  })
  const stores = parseStores(values.store)
  const numbers = [values.kills, values['stanza-kills'], values.seed, values.instances].map(Number)
  if (stores.length === 0 || numbers.some(number => !Number.isInteger(number) || number < 0)) return null
  const [kills = 0, stanzaKills = 0, seed = 0, instances = 0] = numbers
  return {
    kills,
    stanzaKills,
    seed,
    stores,
    instances,
    sandbox: values.sandbox,
    reliableNetwork: values['reliable-network'],
    logs: values.logs,
  }
}

function underLoad(settings: Settings): Trial {
  return async (database, store) =>
    show(store, await runKills({ ...settings, database, say: line => console.log(`${store}: ${line}`) }))
}

function betweenStanzas({ stanzaKills: kills, seed }: Settings): Trial {
  return async (database, store) => {
    const say = (line: string) => console.log(`${store}: between stanzas, ${line}`)
    const violations = await runStanzaKills({ database, kills, seed, say })
    for (const violation of violations) console.log(`${store}: BROKEN ${violation}`)
    console.table({ [store]: { 'kills between stanzas': kills, broken: violations.length } })
    return violations.length === 0
  }
}

/** Counts the violations by kind: sentences of one kind differ only in IDs, numbers and quotations. */
function countKinds(violations: readonly string[]): [kind: string, count: number][] {
  const kinds = Map.groupBy(violations, sentence => sentence.replaceAll(/(msg|evt|inst)_\w+|"[^"]*"|\d+/g, '…'))
  return [...kinds].map(([kind, sentences]) => [kind, sentences.length])
}

/** @returns whether all held */
function show(store: StoreKind, { violations, lostIncoming, networkFaultCounts, ...counts }: KillReport): boolean {
  for (const violation of violations.slice(0, SHOWN)) console.log(`${store}: BROKEN ${violation}`)
  for (const text of lostIncoming.slice(0, SHOWN))
    console.log(`${store}: BROKEN the incoming "${text}" was never reported.`)
  for (const [kind, count] of countKinds(violations)) console.log(`${store}: ${count} × ${kind}`)
  const broken = violations.length + lostIncoming.length
  if (networkFaultCounts !== null) console.log(`${store}: ${JSON.stringify(networkFaultCounts)}`)
  console.table({ [store]: { ...counts, durationMs: Math.round(counts.durationMs), broken } })
  return broken === 0
}

const settings = readSettings()
if (settings === null) {
  console.error(USAGE)
  process.exit(1)
}
const { kills, stanzaKills, seed, stores } = settings
console.log(`${kills} kills under load and ${stanzaKills} between stanzas on each store; repeat with --seed ${seed}`)
const trials = [...(kills > 0 ? [underLoad(settings)] : []), ...(stanzaKills > 0 ? [betweenStanzas(settings)] : [])]
if (!(await runTrials(stores, trials))) process.exitCode = 1
