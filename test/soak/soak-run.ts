import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient } from '../api-client.ts'
import type { TestDatabase } from '../databases/database.ts'
import type { Network } from '../network.ts'
import { type LinkedInstance, LoadHarness } from '../rig/harness.ts'
import { judge, type Verdict } from '../rig/judge.ts'
import type { Pace } from '../rig/load.ts'
import { until } from '../until.ts'
import { FaultInjector, type FaultKind } from './fault-injector.ts'
import { MemorySampler, SAMPLED_NODE_OPTIONS, slopeOf } from './memory.ts'
import { retryOn503 } from './retry-on-503.ts'

/** On average, each instance sends a text and receives one every 2 s. */
const PACE: Pace = { senders: 1, sendEveryMs: [800, 3_200], writeEveryMs: [800, 3_200], maxPendingEvents: 5 }
/** The pause between faults: each of 50 instances has about one fault a minute. */
const FAULT_EVERY_MS = [600, 1_800] as const
/** The share of the run that follows the last fault. */
const CALM_SHARE = 0.15
const SAMPLE_EVERY_MS = 5_000
/** The first share of the run, when caches fill and code is compiled. Memory is judged afterwards. */
const WARM_UP_SHARE = 0.3
/** A steeper slope is a leak. It is judged only in runs of some minutes, when the caches are full. */
const FLAT_MB_PER_MINUTE = 5
const SLOPE_JUDGED_AFTER_MS = 240_000
const PROGRESS_EVERY_MS = 10_000
/** The pauses between logins may have grown to minutes by the last fault. */
const CONNECTED_WITHIN_MS = 330_000
const POLL_EVERY_MS = 250
/** Callers repeat each call until its 202, and every instance reconnects well within this time. */
const ACCEPTED_WITHIN_MS = 330_000
/** Without one-time keys, 50 clients are linked within seconds. */
const NETWORK_OPTIONS = ['--claimed-pre-keys', '500']

export interface SoakOptions {
  database: TestDatabase
  instances: number
  /** The duration of the traffic. */
  durationMs: number
  seed: number
  say(line: string): void
}

export interface SoakReport extends Verdict {
  accepted: number
  incoming: number
  /** Attempts that arrived. */
  arrivals: number
  faults: ReadonlyMap<FaultKind, number>
  /** How often Pombal requested a message again from a contact, and a contact from Pombal. */
  askedAgain: { byUs: number; byContacts: number }
  /** After the warm-up at the beginning of the run. */
  memorySlopeMbPerMinute: number
  /** Resident memory after garbage collection. */
  memoryMb: { first: number; last: number }
  /** From the last fault until every instance was connected. */
  connectedAfterMs: number
  trafficMs: number
  durationMs: number
}

/** Runs constant traffic in both directions over many instances while WhatsApp misbehaves at random, then judges the run. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { durationMs, say, instances } = options
  const startedAt = performance.now()
  const harness = await LoadHarness.open({
    ...options,
    load: { pace: PACE, retriedCodes: ['instance_not_connected'] },
    nodeOptions: SAMPLED_NODE_OPTIONS,
    networkOptions: NETWORK_OPTIONS,
  })
  const cleanUp = new DisposableStack()
  try {
    const { network, service, linkedInstances } = harness
    if (!network || service.pid === undefined) throw new Error('The soak needs a network and a service of its own.')
    say(`${instances} instances are connected`)
    const faultInjector = new FaultInjector({
      network,
      admin: service.admin,
      linkedInstances,
      random: harness.random,
      everyMs: FAULT_EVERY_MS,
    })
    cleanUp.use(faultInjector)
    const memorySampler = new MemorySampler(service.pid, SAMPLE_EVERY_MS)
    cleanUp.defer(() => memorySampler.stop())
    harness.startLoad()
    const progress = setInterval(() => say(progressOf(harness, faultInjector, memorySampler)), PROGRESS_EVERY_MS)
    cleanUp.defer(() => clearInterval(progress))
    const askedAgain = await countRetries(network)
    await faultInjector.start()
    await sleep(durationMs * (1 - CALM_SHARE))
    const retries = await askedAgain()
    const calmAt = performance.now()
    await Promise.all([faultInjector.stop(), sleep(durationMs * CALM_SHARE)])
    memorySampler.stop()
    await within(ACCEPTED_WITHIN_MS, harness.stopLoad())
    say('the traffic has ended')
    await untilConnected(service.admin, linkedInstances)
    const connectedAfterMs = performance.now() - calmAt
    await harness.untilQuiet()
    const facts = await harness.collectFacts()
    const verdict = judge(facts)
    const warm = memorySampler.samples.filter(({ atMs }) => atMs >= durationMs * WARM_UP_SHARE)
    return {
      ...verdict,
      violations: [...verdict.violations, ...(await harness.listUndelivered())],
      accepted: facts.accepted.length,
      incoming: facts.incoming.length,
      arrivals: facts.arrivals.length,
      faults: faultInjector.counts,
      askedAgain: retries,
      memorySlopeMbPerMinute: slopeOf(warm),
      memoryMb: { first: warm[0]?.residentMb ?? 0, last: memorySampler.latest },
      connectedAfterMs,
      trafficMs: durationMs,
      durationMs: performance.now() - startedAt,
    }
  } finally {
    cleanUp.dispose()
    await harness.dispose()
  }
}

/** Every broken guarantee, as a sentence. */
export function listViolations({ violations, lostIncoming, memorySlopeMbPerMinute, trafficMs }: SoakReport): string[] {
  const grows = trafficMs >= SLOPE_JUDGED_AFTER_MS && memorySlopeMbPerMinute > FLAT_MB_PER_MINUTE
  return [
    ...violations,
    ...lostIncoming.map(text => `No event reported "${text}".`),
    ...(grows ? [`Memory grows by ${memorySlopeMbPerMinute.toFixed(1)} MB per minute.`] : []),
  ]
}

/** Polls the instances one after the other: polling all at once would be a load of its own. */
async function untilConnected(admin: AdminClient, linkedInstances: readonly LinkedInstance[]): Promise<void> {
  const waiting = new Set(linkedInstances.map(({ client }) => client.id))
  const look = async () => {
    await sleep(POLL_EVERY_MS)
    for (const id of waiting) {
      const { state } = await retryOn503(() => admin.connection(id))
      if (state === 'connected') waiting.delete(id)
    }
    return waiting.size === 0
  }
  await until('every instance to be connected', look, CONNECTED_WITHIN_MS)
}

/** @throws Error when `work` takes longer */
async function within(limitMs: number, work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`Callers waited ${limitMs} ms for a 202.`)), limitMs)
  await Promise.race([work, promise]).finally(() => clearTimeout(timer))
}

/** Counts retry receipts from now on. @returns a function that reads the counts */
async function countRetries(network: Network): Promise<() => Promise<SoakReport['askedAgain']>> {
  const count = async (direction: 'in' | 'out') => {
    const when = { stanza: 'receipt', direction, attrs: { type: 'retry' } }
    const { rule } = await network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
    return rule
  }
  const [byUs, byContacts] = [await count('in'), await count('out')]
  return async () => {
    const { rules } = await network.scenario()
    const applied = (id: number | undefined) => rules.find(rule => rule.id === id)?.applied ?? 0
    return { byUs: applied(byUs), byContacts: applied(byContacts) }
  }
}

function progressOf(harness: LoadHarness, faultInjector: FaultInjector, memorySampler: MemorySampler): string {
  const [accepted, incoming] = [
    harness.loads.flatMap(load => load.accepted),
    harness.loads.flatMap(load => load.incoming),
  ]
  return [
    `${accepted.length} texts accepted`,
    `${incoming.length} came in`,
    `${harness.recorder.arrivals.length} events`,
    `${faultInjector.total} faults`,
    `${Math.round(memorySampler.latest)} MB`,
  ].join(', ')
}
