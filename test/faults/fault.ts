import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabase, type StoreKind, type TestDatabase } from '../databases/database.ts'
import type { PostgresServer } from '../databases/postgres.ts'
import { LoadHarness, type NodeOptions } from '../rig/harness.ts'
import { judge } from '../rig/judge.ts'
import type { Pace } from '../rig/load.ts'
import type { Random } from '../rig/random.ts'

/** Slower than the nodes can send, because a run measures the effect of a fault and not the machine's speed. */
const PACE: Pace = { senders: 3, sendEveryMs: [0, 400], writeEveryMs: [200, 800], maxPendingEvents: 100 }
/** How long the load runs before the fault and after the recovery: a random time in this range. */
const LOAD_MS = [500, 2_000] as const
const INSTANCES = { sqlite: 2, postgres: 3 } as const
const NODES = { sqlite: 1, postgres: 3 } as const

export interface FaultContext {
  seed: number
  postgres: Pick<PostgresServer, 'url' | 'crash' | 'restart'>
  /** A folder for the nodes' logs if a guarantee was broken. */
  logs: string | null
  say(line: string): void
}

export interface FaultReport {
  accepted: number
  lost: number
  doubled: number
  outOfOrder: number
  /** Attempts that repeated a delivery that the receiver already had. */
  repeated: number
  /** The time until every instance reports a message accepted after the fault, or after its end if it is temporary. */
  recoveredMs: number
  /** One sentence per broken guarantee, including those counted above. */
  violations: readonly string[]
}

/** A fault, tried on a new service. */
export interface Fault {
  readonly name: string
  readonly store: StoreKind
  run(context: FaultContext): Promise<FaultReport>
}

export interface FaultUnderLoad {
  name: string
  store: StoreKind
  /** A longer recovery is a violation. */
  recoversWithinMs: number
  /** Which attempts may be repeated. Default: those in flight. */
  repeats?: 'none'
  /** Which calls may be refused. Default: any number, each with 503 and `Retry-After`. */
  refuses?: 'nothing'
  /** The clock of the event IDs jumps, so their order is not the order of incoming messages. */
  clockJumps?: boolean
  /** Prepares a run. Resources are added to `cleanUp`. */
  arrange(database: TestDatabase, cleanUp: AsyncDisposableStack): Promise<Arrangement> | Arrangement
}

export interface Arrangement {
  /** Options of the nodes. */
  nodes?: readonly NodeOptions[]
  /** Causes the fault. Resolves when a temporary fault is over, or a permanent one has occurred. */
  strike(context: StrikeContext): Promise<void>
}

export interface StrikeContext extends FaultContext {
  harness: LoadHarness
  random: Random
  /** Counts the recovery from this moment (`performance.now()`) instead of the end of the fault. */
  since(moment: number): void
}

/** Causes the fault under load in both directions, then judges the run. */
export function underLoad(fault: FaultUnderLoad): Fault {
  return { name: fault.name, store: fault.store, run: context => runUnderLoad(fault, context) }
}

async function runUnderLoad(fault: FaultUnderLoad, context: FaultContext): Promise<FaultReport> {
  const { store } = fault
  await using cleanUp = new AsyncDisposableStack()
  const database = await createDatabase(store, context.postgres.url)
  cleanUp.defer(() => database.dispose())
  const { nodes = Array.from({ length: NODES[store] }, () => ({})), strike } = await fault.arrange(database, cleanUp)
  const harness = await LoadHarness.open({
    database,
    instances: INSTANCES[store],
    seed: context.seed,
    load: { pace: PACE },
    networkFaults: true,
    nodes,
  })
  cleanUp.defer(() => harness.dispose())
  try {
    const outcome = await strikeAndCount(fault, harness, strike, context)
    if (outcome.violations.length > 0) writeLogs(harness, fault, context)
    return outcome
  } catch (error) {
    writeLogs(harness, fault, context)
    throw error
  }
}

async function strikeAndCount(
  fault: FaultUnderLoad,
  harness: LoadHarness,
  strike: Arrangement['strike'],
  context: FaultContext,
): Promise<FaultReport> {
  const { random } = harness
  harness.startLoad()
  await harness.untilRecovered()
  await sleep(random.between(...LOAD_MS))
  let since: number | null = null
  await strike({ ...context, harness, random, since: moment => (since = moment) })
  const overAt = performance.now()
  await harness.untilRecovered()
  const recoveredMs = performance.now() - (since ?? overAt)
  context.say(`recovered after ${Math.round(recoveredMs)} ms`)
  await sleep(random.between(...LOAD_MS))
  await harness.stopLoad()
  await harness.untilQuiet()
  return await report(fault, harness, recoveredMs)
}

function writeLogs(harness: LoadHarness, { name, store }: FaultUnderLoad, { logs, seed, say }: FaultContext): void {
  if (logs === null) return
  const folder = join(logs, `${store} ${name} ${seed}`.replaceAll(/[^a-z0-9]+/gi, '-'))
  mkdirSync(folder, { recursive: true })
  harness.nodes.forEach((node, index) => {
    writeFileSync(join(folder, `node-${index + 1}.log`), node.wholeOutput)
  })
  say(`logs in ${folder}`)
}

async function report(fault: FaultUnderLoad, harness: LoadHarness, recoveredMs: number): Promise<FaultReport> {
  const facts = await harness.collectFacts()
  const verdict = judge(facts, { ordersIncoming: !fault.clockJumps })
  const violations = [
    ...verdict.violations,
    ...verdict.lostIncoming.map(text => `No event reported the incoming "${text}".`),
    ...(await harness.listUndelivered()),
    ...(await harness.replay()),
  ]
  if (fault.repeats === 'none' && verdict.repeatedAttempts > 0)
    violations.push(`${verdict.repeatedAttempts} webhook attempts were repeated.`)
  const refusals = harness.loads.flatMap(load => load.refusals)
  if (fault.refuses === 'nothing') violations.push(...refusals.map(refusal => `A call was refused: ${refusal}.`))
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
