import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabase, type StoreKind, type TestDatabase } from '../database.ts'
import type { PostgresServer } from '../postgres.ts'
import { judge } from '../rig/judge.ts'
import type { Pace } from '../rig/load.ts'
import type { Random } from '../rig/random.ts'
import { type NodeOptions, Stage } from '../rig/stage.ts'

/** Less than the nodes can do: what is measured is what a fault does, not how fast the machine is. */
const PACE: Pace = { senders: 3, sendEveryMs: [0, 400], writeEveryMs: [200, 800] }
/** Load before the fault, and after all works again. */
const LOAD_MS = [500, 2_000] as const
/** What has not recovered by then never will. */
const GIVE_UP_MS = 90_000
const INSTANCES = { sqlite: 2, postgres: 3 } as const
const NODES = { sqlite: 1, postgres: 3 } as const

export interface FaultContext {
  seed: number
  postgres: Pick<PostgresServer, 'url' | 'crash' | 'restart'>
  /** Where the nodes' logs go when a promise was broken; null: nowhere. */
  logs: string | null
  say(line: string): void
}

export interface FaultReport {
  accepted: number
  lost: number
  doubled: number
  outOfOrder: number
  /** Attempts that repeated one which had arrived before. */
  repeated: number
  /** Until every instance has reported a message that was accepted after the fault; from its end, where it has one. */
  recoveredMs: number
  /** One sentence per broken promise, those counted above among them. */
  violations: readonly string[]
}

/** Something that goes wrong in the life of a service, to be tried on a new one. */
export interface Fault {
  readonly name: string
  readonly store: StoreKind
  run(context: FaultContext): Promise<FaultReport>
}

export interface FaultUnderLoad {
  name: string
  store: StoreKind
  /** Longer is a broken promise. */
  recoversWithinMs: number
  /** Attempts may be repeated: those in flight, unless said otherwise. */
  repeats?: 'none'
  /** The clock that event ids are made by jumps: the order of incoming messages cannot be read from them. */
  clockJumps?: boolean
  /** Prepares a run. What that makes is disposed of with `cleanUp`. */
  arrange(database: TestDatabase, cleanUp: AsyncDisposableStack): Promise<Arrangement> | Arrangement
}

export interface Arrangement {
  /** How the nodes are started, where it matters. */
  nodes?: readonly NodeOptions[]
  /** Resolves when the fault is over, or, if it is for good, has struck. */
  strike(scene: Scene): Promise<void>
}

export interface Scene extends FaultContext {
  stage: Stage
  random: Random
  /** When it began, where the time to recover counts from there: `performance.now()`. */
  since(moment: number): void
}

/** The fault strikes while texts are sent and come in; then everything is counted. */
export function underLoad(fault: FaultUnderLoad): Fault {
  return { name: fault.name, store: fault.store, run: context => runUnderLoad(fault, context) }
}

async function runUnderLoad(fault: FaultUnderLoad, context: FaultContext): Promise<FaultReport> {
  const { store } = fault
  await using cleanUp = new AsyncDisposableStack()
  const database = await createDatabase(store, context.postgres.url)
  cleanUp.defer(() => database.dispose())
  const { nodes = Array.from({ length: NODES[store] }, () => ({})), strike } = await fault.arrange(database, cleanUp)
  const stage = await Stage.open({
    database,
    instances: INSTANCES[store],
    seed: context.seed,
    load: { pace: PACE },
    hardship: true,
    nodes,
  })
  cleanUp.defer(() => stage.dispose())
  try {
    const outcome = await strikeAndCount(fault, stage, strike, context)
    if (outcome.violations.length > 0) writeLogs(stage, fault, context)
    return outcome
  } catch (error) {
    writeLogs(stage, fault, context)
    throw error
  }
}

async function strikeAndCount(
  fault: FaultUnderLoad,
  stage: Stage,
  strike: Arrangement['strike'],
  context: FaultContext,
): Promise<FaultReport> {
  const { random } = stage
  stage.startLoad()
  await stage.untilRecovered(GIVE_UP_MS)
  await sleep(random.between(...LOAD_MS))
  let since: number | null = null
  await strike({ ...context, stage, random, since: moment => (since = moment) })
  const overAt = performance.now()
  await stage.untilRecovered(GIVE_UP_MS)
  const recoveredMs = performance.now() - (since ?? overAt)
  context.say(`works again after ${Math.round(recoveredMs)} ms`)
  await sleep(random.between(...LOAD_MS))
  await stage.stopLoad()
  await stage.untilQuiet()
  return await report(fault, stage, recoveredMs)
}

function writeLogs(stage: Stage, { name, store }: FaultUnderLoad, { logs, seed, say }: FaultContext): void {
  if (logs === null) return
  const folder = join(logs, `${store} ${name} ${seed}`.replaceAll(/[^a-z0-9]+/gi, '-'))
  mkdirSync(folder, { recursive: true })
  stage.nodes.forEach((node, index) => {
    writeFileSync(join(folder, `node-${index + 1}.log`), node.wholeOutput)
  })
  say(`logs in ${folder}`)
}

async function report(fault: FaultUnderLoad, stage: Stage, recoveredMs: number): Promise<FaultReport> {
  const facts = await stage.collectFacts()
  const verdict = judge(facts, { ordersIncoming: !fault.clockJumps })
  const violations = [
    ...verdict.violations,
    ...verdict.lostIncoming.map(text => `No event reported the incoming "${text}".`),
    ...(await stage.listUndelivered()),
    ...(await stage.replay()),
  ]
  if (fault.repeats === 'none' && verdict.repeatedAttempts > 0)
    violations.push(`${verdict.repeatedAttempts} webhook attempts were repeated.`)
  if (recoveredMs > fault.recoversWithinMs) violations.push(`It took ${Math.round(recoveredMs)} ms to recover.`)
  return {
    accepted: facts.accepted.length,
    lost: verdict.lost + verdict.lostIncoming.length,
    doubled: verdict.doubled,
    outOfOrder: verdict.outOfOrder,
    repeated: verdict.repeatedAttempts,
    recoveredMs,
    violations,
  }
}
