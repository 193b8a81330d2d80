import { readOptions } from '../../scripts/command-line.ts'
import type { StoreKind } from '../databases/database.ts'
import { newSeed } from '../rig/random.ts'
import { parseStores, runTrials, type Trial } from '../rig/trials.ts'
import { listViolations, runSoak, type SoakReport } from './soak-run.ts'

/** Runs many instances over a WhatsApp that misbehaves: `npm run test:soak -- --minutes 60 --store sqlite`. */

const USAGE = 'usage: npm run test:soak -- [--minutes 5] [--instances 50] [--seed N] [--store sqlite|postgres]'
/** Violations printed per store; the rest are only counted. */
const SHOWN = 20

interface Settings {
  durationMs: number
  instances: number
  seed: number
  stores: readonly StoreKind[]
}

/** Null if an argument is invalid. */
function readSettings(): Settings | null {
  const { values } = readOptions(USAGE, {
    minutes: { type: 'string', default: '5' },
    instances: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(newSeed()) },
    store: { type: 'string' },
  })
  const stores = parseStores(values.store)
  const [durationMs, instances, seed] = [Number(values.minutes) * 60_000, Number(values.instances), Number(values.seed)]
  const areCounts = [instances, seed].every(count => Number.isSafeInteger(count) && count >= 0)
  const isRight = stores.length > 0 && durationMs > 0 && areCounts && instances > 0
  return isRight ? { durationMs, instances, seed, stores } : null
}

function soak(settings: Settings): Trial {
  return async (database, store) => {
    const startedAt = performance.now()
    const say = (line: string) => {
      const seconds = Math.round((performance.now() - startedAt) / 1_000)
      console.log(`${store} ${String(seconds).padStart(4)} s  ${line}`)
    }
    return show(store, await runSoak({ ...settings, database, say }))
  }
}

function show(store: StoreKind, report: SoakReport): boolean {
  const violations = listViolations(report)
  for (const violation of violations.slice(0, SHOWN)) console.log(`${store}: BROKEN ${violation}`)
  console.table(tableOf(store, report, violations.length))
  return violations.length === 0
}

function tableOf(store: StoreKind, report: SoakReport, broken: number): Record<string, string | number> {
  const { memoryMb, askedAgain } = report
  return {
    store,
    ...Object.fromEntries([...report.faults].map(([kind, count]) => [`fault: ${kind}`, count])),
    'texts accepted': report.accepted,
    'incoming texts': report.incoming,
    'webhook attempts': report.arrivals,
    'repeated webhook attempts': report.repeatedAttempts,
    'sent again under the same id': report.repeatedOnWire,
    'requested again by contacts': askedAgain.byContacts,
    'requested again by Pombal': askedAgain.byUs,
    'incoming texts lost': report.lostIncoming.length,
    'memory, MB': `${memoryMb.first.toFixed(0)} to ${memoryMb.last.toFixed(0)}`,
    'memory slope, MB per minute': report.memorySlopeMbPerMinute.toFixed(2),
    'all connected after the last fault, s': (report.connectedAfterMs / 1_000).toFixed(1),
    'whole run, s': Math.round(report.durationMs / 1_000),
    broken,
  }
}

const settings = readSettings()
if (settings === null) {
  console.error(USAGE)
  process.exit(1)
}
console.log(`${settings.instances} instances; repeat with --seed ${settings.seed}`)
if (!(await runTrials(settings.stores, [soak(settings)]))) process.exitCode = 1
