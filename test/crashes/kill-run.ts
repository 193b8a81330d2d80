import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { TestDatabase } from '../database.ts'
import type { Facts } from '../rig/facts.ts'
import type { HardshipCounts } from '../rig/hardship.ts'
import { judge, type Verdict } from '../rig/judge.ts'
import { BUSY } from '../rig/load.ts'
import { Stage } from '../rig/stage.ts'
import { type KillPoint, nextKillPoint } from './kill-points.ts'

/** Events that an instance may be behind before callers wait: a slow machine would never catch up between two kills. */
const MOST_BEHIND = 150
/** Of each text, in a log. */
const LOGGED_UNITS = 300
const CONNECTED_WITHIN_MS = 180_000
/** What a kill that follows a 202 or an attempt waits for it at most. */
const TRIGGER_WITHIN_MS = 1_000

export interface KillRunOptions {
  database: TestDatabase
  kills: number
  instances: number
  sandbox?: boolean
  /** WhatsApp behaves well; by default it makes it hard. */
  easy?: boolean
  /** The same seed: the same kill points, recipients and pauses; what the machine makes of them differs. */
  seed: number
  /** A folder for what was seen, and for the service's log where a promise was broken or the run broke off. */
  logs?: string | undefined
  say(line: string): void
}

export interface KillReport extends Verdict {
  kills: number
  accepted: number
  incoming: number
  /** Attempts that arrived, repeated ones included. */
  arrivals: number
  /** Attempts after the first of their delivery. */
  retries: number
  /** Incoming texts that are longer than an event. */
  longTexts: number
  /** What WhatsApp did to make it hard, in numbers. */
  hardships: HardshipCounts | null
  durationMs: number
}

/** Kills the service again and again under load, lets it come to rest, and counts. */
export async function runKills(options: KillRunOptions): Promise<KillReport> {
  const load = { pace: { ...BUSY, mostUndelivered: MOST_BEHIND } }
  const stage = await Stage.open({ ...options, load, hardship: !options.easy && !options.sandbox })
  let held = false
  try {
    const report = await killAndCount(stage, options)
    held = report.violations.length === 0 && report.lostIncoming.length === 0
    return report
  } finally {
    if (!held) writeLog(stage, options)
    await stage.dispose()
  }
}

async function killAndCount(stage: Stage, { kills, say, database, logs, seed }: KillRunOptions): Promise<KillReport> {
  const startedAt = performance.now()
  const random = stage.random
  stage.startLoad()
  for (let n = 1; n <= kills; n++) {
    const point = nextKillPoint(random, stage.startUpMs)
    await killAt(stage, point)
    say(
      `kill ${n}/${kills} ${point.kind}${point.onceConnected ? ' once connected' : ''}, ${Math.round(point.afterMs)} + ${Math.round(point.thenMs)} ms`,
    )
    await database.expireLeases()
  }
  await stage.service.start()
  await stage.untilRecovered(CONNECTED_WITHIN_MS)
  // More load after the last restart, once all works again.
  await stage.untilRecovered(CONNECTED_WITHIN_MS)
  await stage.stopLoad()
  say('load ended')
  await stage.untilQuiet()
  const facts = await stage.collectFacts()
  if (logs !== undefined) writeFacts(facts, fileIn(logs, { database, seed }, 'facts.json'))
  const verdict = judge(facts)
  const violations = [...verdict.violations, ...(await stage.listUndelivered()), ...(await stage.replay())]
  violations.push(...(await stopAndCheck(stage, database.url === null)))
  return {
    ...verdict,
    violations,
    kills,
    accepted: facts.accepted.length,
    incoming: facts.incoming.length,
    arrivals: facts.arrivals.length,
    longTexts: facts.incoming.filter(({ text }) => text.length > 65_536).length,
    hardships: stage.hardships,
    retries: facts.arrivals.filter(({ attemptNumber }) => attemptNumber > 1).length,
    durationMs: performance.now() - startedAt,
  }
}

function writeLog(stage: Stage, options: KillRunOptions): void {
  if (options.logs === undefined) return
  const file = fileIn(options.logs, options, 'log')
  writeFileSync(file, stage.service.wholeOutput)
  options.say(`log in ${file}`)
}

/** Long texts are cut. */
function writeFacts(facts: Facts, file: string): void {
  const short = (_name: string, value: unknown) =>
    value instanceof Map ? [...value] : typeof value === 'string' ? value.slice(0, LOGGED_UNITS) : value
  writeFileSync(file, JSON.stringify(facts, short, 1))
}

function fileIn(folder: string, { database, seed }: Pick<KillRunOptions, 'database' | 'seed'>, suffix: string): string {
  mkdirSync(folder, { recursive: true })
  return join(folder, `${database.url === null ? 'sqlite' : 'postgres'}-${seed}.${suffix}`)
}

async function killAt(stage: Stage, { kind, onceConnected, afterMs, thenMs }: KillPoint): Promise<void> {
  const { service } = stage
  // The first time it is up already: then a kill during start-up is one at a moment.
  if (service.url === null) {
    service.boot()
    if (kind !== 'during start-up') await service.ready()
  }
  if (onceConnected) await stage.untilConnected(CONNECTED_WITHIN_MS)
  await sleep(afterMs)
  if (kind === 'before WhatsApp answers') stage.pauseWhatsapp()
  if (kind === 'before WhatsApp answers' || kind === 'right after a 202') await stage.nextAccepted(TRIGGER_WITHIN_MS)
  if (kind === 'in an attempt') await stage.nextArrival(TRIGGER_WITHIN_MS)
  if (thenMs > 0) await sleep(thenMs)
  await service.kill('SIGKILL')
  stage.resumeWhatsapp()
}

async function stopAndCheck(stage: Stage, sqlite: boolean): Promise<string[]> {
  const { code } = await stage.service.kill('SIGTERM')
  const violations = code === 0 ? [] : [`The service ended with ${code} after SIGTERM.`]
  if (!sqlite) return violations
  const database = new Database(join(stage.service.dataDir, 'pombal.db'), { readonly: true })
  const integrity = database.pragma('integrity_check', { simple: true })
  database.close()
  return integrity === 'ok' ? violations : [...violations, `The database's integrity: ${integrity}`]
}
