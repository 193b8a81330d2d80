/**
 * `npm run test:faults`: causes one fault after another, each on a new service, most of them under load, and prints a table of what was
 * accepted, shown and reported.
 *
 *   --runs 3        the runs of each fault, each with its own seed
 *   --seed N        the seed of the first run
 *   --fault TEXT    only faults whose name contains the text; may be repeated
 *   --store KIND    only sqlite or only postgres
 *   --logs FOLDER   a folder for the nodes' logs if a guarantee was broken
 */
import { inspect } from 'node:util'
import { readOptions } from '../../scripts/command-line.ts'
import { startPostgres } from '../databases/postgres.ts'
import { newSeed } from '../rig/random.ts'
import type { Fault, FaultContext, FaultReport } from './fault.ts'
import { FAULTS } from './faults.ts'
import { type FaultRuns, tableOf } from './table.ts'

const USAGE =
  'usage: npm run test:faults -- [--runs 1] [--seed N] [--fault TEXT]… [--store sqlite|postgres] [--logs FOLDER]'
/** Violations printed of each run; the rest is counted. */
const SHOWN = 10

const { values } = readOptions(USAGE, {
  runs: { type: 'string', default: '1' },
  seed: { type: 'string', default: String(newSeed()) },
  fault: { type: 'string', multiple: true },
  store: { type: 'string' },
  logs: { type: 'string' },
})
const faults = FAULTS.filter(
  ({ name, store }) => (values.store ?? store) === store && (values.fault?.some(text => name.includes(text)) ?? true),
)
if (faults.length === 0)
  throw new Error(`There is no such fault. Known faults: ${FAULTS.map(({ name }) => name).join('; ')}.`)

async function runOnce(fault: Fault, context: FaultContext): Promise<FaultReport | null> {
  try {
    const report = await fault.run(context)
    for (const violation of report.violations.slice(0, SHOWN)) context.say(`BROKEN ${violation}`)
    return report
  } catch (error) {
    context.say(`FAILED ${inspect(error)}`)
    return null
  }
}

// Child processes end with this process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const firstSeed = Number(values.seed)
const rows: FaultRuns[] = []
const startedAt = performance.now()
const postgres = await startPostgres()
try {
  for (const fault of faults) {
    const row: FaultRuns = { fault, reports: [], failed: 0 }
    rows.push(row)
    for (let run = 0; run < Number(values.runs); run++) {
      const seed = firstSeed + run
      const say = (line: string) => {
        const seconds = Math.round((performance.now() - startedAt) / 1_000)
        console.log(`${seconds} s  ${fault.name}, ${fault.store}, --seed ${seed}: ${line}`)
      }
      say('begins')
      const report = await runOnce(fault, { seed, postgres, logs: values.logs ?? null, say })
      if (report) row.reports.push(report)
      else row.failed += 1
    }
  }
} finally {
  await postgres.stop()
}
console.log(`\n${tableOf(rows)}`)
if (rows.some(({ failed, reports }) => failed > 0 || reports.some(({ violations }) => violations.length > 0)))
  process.exitCode = 1
