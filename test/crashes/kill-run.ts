import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { TestDatabase } from '../databases/database.ts'
import type { Facts } from '../rig/facts.ts'
import { LoadHarness } from '../rig/harness.ts'
import { judge, type Verdict } from '../rig/judge.ts'
import type { NetworkFaultCounts } from '../rig/network-faults.ts'
import { type KillPoint, nextKillPoint } from './kill-points.ts'

/** Units of each text in a facts file. */
const LOGGED_UNITS = 300
/** The longest wait for the 202 or the attempt that triggers a kill. */
const TRIGGER_WITHIN_MS = 1_000

export interface KillRunOptions {
  database: TestDatabase
  kills: number
  instances: number
  sandbox?: boolean
  /** Without network faults. */
  reliableNetwork?: boolean
  /** Determines kill points, recipients and pauses, but not the timing of the machine. */
  seed: number
  /** A folder for the facts, and for the service's log if a guarantee was broken or the run failed. */
  logs?: string | undefined
  say(line: string): void
}

export interface KillReport extends Verdict {
  kills: number
  accepted: number
  incoming: number
  /** Attempts that arrived, including repeated ones. */
  arrivals: number
  /** Attempts after the first of their delivery. */
  retries: number
  /** Incoming texts that are longer than an event. */
  longTexts: number
  /** How often each network fault occurred. */
  networkFaultCounts: NetworkFaultCounts | null
  durationMs: number
}

/** Kills the service repeatedly under load, waits until all events have arrived, and judges the run. */
export async function runKills(options: KillRunOptions): Promise<KillReport> {
  const harness = await LoadHarness.open({
    ...options,
    networkFaults: !options.reliableNetwork && !options.sandbox,
  })
  let held = false
  try {
    const report = await killAndCount(harness, options)
    held = report.violations.length === 0 && report.lostIncoming.length === 0
    return report
  } finally {
    if (!held) writeLog(harness, options)
    await harness.dispose()
  }
}

async function killAndCount(
  harness: LoadHarness,
  { kills, say, database, logs, seed }: KillRunOptions,
): Promise<KillReport> {
  const startedAt = performance.now()
  const random = harness.random
  harness.startLoad()
  for (let n = 1; n <= kills; n++) {
    const point = nextKillPoint(random, harness.startUpMs)
    await killAt(harness, point)
    say(
      `kill ${n}/${kills} ${point.kind}${point.onceConnected ? ' once connected' : ''}, ${Math.round(point.afterMs)} + ${Math.round(point.thenMs)} ms`,
    )
    await database.expireLeases()
  }
  await harness.service.start()
  await harness.untilRecovered()
  // A second round of load, with everything working again.
  await harness.untilRecovered()
  await harness.stopLoad()
  say('load ended')
  await harness.untilQuiet()
  const facts = await harness.collectFacts()
  if (logs !== undefined) writeFacts(facts, fileIn(logs, { database, seed }, 'facts.json'))
  const verdict = judge(facts)
  const violations = [...verdict.violations, ...(await harness.listUndelivered()), ...(await harness.replay())]
  violations.push(...(await stopAndCheck(harness, database.url === null)))
  return {
    ...verdict,
    violations,
    kills,
    accepted: facts.accepted.length,
    incoming: facts.incoming.length,
    arrivals: facts.arrivals.length,
    longTexts: facts.incoming.filter(({ text }) => text.length > 65_536).length,
    networkFaultCounts: harness.networkFaultCounts,
    retries: facts.arrivals.filter(({ attemptNumber }) => attemptNumber > 1).length,
    durationMs: performance.now() - startedAt,
  }
}

function writeLog(harness: LoadHarness, options: KillRunOptions): void {
  if (options.logs === undefined) return
  const file = fileIn(options.logs, options, 'log')
  writeFileSync(file, harness.service.wholeOutput)
  options.say(`log in ${file}`)
}

/** Truncates long texts. */
function writeFacts(facts: Facts, file: string): void {
  const short = (_name: string, value: unknown) =>
    value instanceof Map ? [...value] : typeof value === 'string' ? value.slice(0, LOGGED_UNITS) : value
  writeFileSync(file, JSON.stringify(facts, short, 1))
}

function fileIn(folder: string, { database, seed }: Pick<KillRunOptions, 'database' | 'seed'>, suffix: string): string {
  mkdirSync(folder, { recursive: true })
  return join(folder, `${database.url === null ? 'sqlite' : 'postgres'}-${seed}.${suffix}`)
}

async function killAt(harness: LoadHarness, { kind, onceConnected, afterMs, thenMs }: KillPoint): Promise<void> {
  const { service } = harness
  // Before the first kill the service already runs, so the kind `during start-up` acts like `at a moment` there.
  if (service.url === null) {
    service.boot()
    if (kind !== 'during start-up') await service.ready()
  }
  if (onceConnected) await harness.untilConnected()
  await sleep(afterMs)
  if (kind === 'before WhatsApp answers') harness.pauseWhatsapp()
  if (kind === 'before WhatsApp answers' || kind === 'right after a 202') await harness.nextAccepted(TRIGGER_WITHIN_MS)
  if (kind === 'in an attempt') await harness.nextArrival(TRIGGER_WITHIN_MS)
  if (thenMs > 0) await sleep(thenMs)
  await service.kill('SIGKILL')
  harness.resumeWhatsapp()
}

async function stopAndCheck(harness: LoadHarness, sqlite: boolean): Promise<string[]> {
  const { code } = await harness.service.kill('SIGTERM')
  const violations = code === 0 ? [] : [`The service ended with ${code} after SIGTERM.`]
  if (!sqlite) return violations
  const database = new Database(join(harness.service.dataDir, 'pombal.db'), { readonly: true })
  const integrity = database.pragma('integrity_check', { simple: true })
  database.close()
  return integrity === 'ok' ? violations : [...violations, `The database's integrity: ${integrity}`]
}
