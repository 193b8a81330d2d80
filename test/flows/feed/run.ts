import { readOptions } from '../../../scripts/command-line.ts'
import { newSeed } from '../../rig/random.ts'
import { parseStores, runTrials, type Trial } from '../../rig/trials.ts'
import { runFeed } from './kill-run.ts'

/** Reads 10,000 events while readers and nodes are killed: `npm run test:feed -- --store postgres`. */

const USAGE = 'usage: npm run test:feed -- [--events 10000] [--kills 12] [--seed N] [--store sqlite|postgres]'
/** Violations printed; the rest is counted. */
const SHOWN = 20

const { values } = readOptions(USAGE, {
  events: { type: 'string', default: '10000' },
  kills: { type: 'string', default: '12' },
  seed: { type: 'string', default: String(newSeed()) },
  store: { type: 'string' },
})
const stores = parseStores(values.store)
const [events = 0, kills = 0, seed = 0] = [values.events, values.kills, values.seed].map(Number)
if (stores.length === 0 || [events, kills, seed].some(number => !Number.isInteger(number) || number < 0)) {
  console.error(USAGE)
  process.exit(1)
}
console.log(`${events} events and ${kills} kills on each store; repeat with --seed ${seed}`)
const trial: Trial = async (database, store) => {
  const say = (line: string) => console.log(`${store}: ${line}`)
  const { violations, ...report } = await runFeed({ database, events, kills, seed, say })
  for (const violation of violations.slice(0, SHOWN)) console.log(`${store}: BROKEN ${violation}`)
  console.table({ [store]: { ...report, durationMs: Math.round(report.durationMs), broken: violations.length } })
  return violations.length === 0
}
if (!(await runTrials(stores, [trial]))) process.exitCode = 1
