import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient } from '../api-client.ts'
import type { TestDatabase } from '../database.ts'
import type { Network } from '../network.ts'
import { judge, type Verdict } from '../rig/judge.ts'
import type { Pace } from '../rig/load.ts'
import { type Player, Stage } from '../rig/stage.ts'
import { until } from '../until.ts'
import { Scales, slopeOf, WEIGHED_NODE_OPTIONS } from './memory.ts'
import { patiently } from './patiently.ts'
import { Trouble, type TroubleKind } from './trouble.ts'

/** Of each instance, on average: a text every 2 s, and one that comes in. */
const PACE: Pace = { senders: 1, sendEveryMs: [800, 3_200], writeEveryMs: [800, 3_200], mostUndelivered: 5 }
/** Somewhere something goes wrong so often: to each of 50 instances about once a minute. */
const TROUBLE_EVERY_MS = [600, 1_800] as const
/** The traffic goes on for a while after the last fault. */
const CALM_SHARE = 0.15
const WEIGHED_EVERY_MS = 5_000
/** Caches fill up and code is compiled before the memory is worth looking at. */
const WARM_UP_SHARE = 0.3
/** Steeper is a leak; judged from a run of some minutes only, caches being full by then. */
const FLAT_MB_PER_MINUTE = 5
const SLOPE_TELLS_AFTER_MS = 240_000
const PROGRESS_EVERY_MS = 10_000
/** After the last fault the pauses between attempts to log in may have grown to minutes. */
const CONNECTED_WITHIN_MS = 330_000
const POLL_EVERY_MS = 250
/** A caller repeats until it has its 202, and every instance is connected again long before that. */
const ACCEPTED_WITHIN_MS = 330_000
/** Where clients make no one-time keys, 50 of them are linked in seconds. */
const NETWORK_OPTIONS = ['--claimed-pre-keys', '500']

export interface SoakOptions {
  database: TestDatabase
  instances: number
  /** Of the traffic. */
  durationMs: number
  seed: number
  say(line: string): void
}

export interface SoakReport extends Verdict {
  accepted: number
  incoming: number
  /** Attempts that arrived. */
  arrivals: number
  faults: ReadonlyMap<TroubleKind, number>
  /** How often we asked a contact to write a message again, and a contact us. */
  askedAgain: { byUs: number; byContacts: number }
  /** After the first third of the run. */
  memorySlopeMbPerMinute: number
  /** Resident, garbage collected. */
  memoryMb: { first: number; last: number }
  /** From the last fault until every instance was connected. */
  connectedAfterMs: number
  trafficMs: number
  durationMs: number
}

/** Constant traffic both ways over many instances while WhatsApp misbehaves at random; then calm, and the count. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { durationMs, say, instances } = options
  const startedAt = performance.now()
  const stage = await Stage.open({
    ...options,
    load: { pace: PACE, passing: ['instance_not_connected'] },
    nodeOptions: WEIGHED_NODE_OPTIONS,
    networkOptions: NETWORK_OPTIONS,
  })
  const cleanUp = new DisposableStack()
  try {
    const { network, service, players } = stage
    if (!network || service.pid === undefined) throw new Error('The soak needs a network and a service of its own.')
    say(`${instances} instances are connected`)
    const trouble = new Trouble({
      network,
      admin: service.admin,
      players,
      random: stage.random,
      everyMs: TROUBLE_EVERY_MS,
    })
    const scales = new Scales(service.pid, WEIGHED_EVERY_MS)
    cleanUp.defer(() => scales.stop())
    stage.startLoad()
    const progress = setInterval(() => say(progressOf(stage, trouble, scales)), PROGRESS_EVERY_MS)
    cleanUp.defer(() => clearInterval(progress))
    const askedAgain = await countRetries(network)
    await trouble.start()
    await sleep(durationMs * (1 - CALM_SHARE))
    const retries = await askedAgain()
    const calmAt = performance.now()
    await Promise.all([trouble.stop(), sleep(durationMs * CALM_SHARE)])
    scales.stop()
    await within(ACCEPTED_WITHIN_MS, stage.stopLoad())
    say('the traffic has ended')
    await untilConnected(service.admin, players)
    const connectedAfterMs = performance.now() - calmAt
    await stage.untilQuiet()
    const facts = await stage.collectFacts()
    const verdict = judge(facts)
    const warm = scales.samples.filter(({ atMs }) => atMs >= durationMs * WARM_UP_SHARE)
    return {
      ...verdict,
      violations: [...verdict.violations, ...(await stage.listUndelivered())],
      accepted: facts.accepted.length,
      incoming: facts.incoming.length,
      arrivals: facts.arrivals.length,
      faults: trouble.counts,
      askedAgain: retries,
      memorySlopeMbPerMinute: slopeOf(warm),
      memoryMb: { first: warm[0]?.residentMb ?? 0, last: scales.latest },
      connectedAfterMs,
      trafficMs: durationMs,
      durationMs: performance.now() - startedAt,
    }
  } finally {
    cleanUp.dispose()
    await stage.dispose()
  }
}

/** Every promise that was not kept, each as a sentence. */
export function breachesOf({ violations, lostIncoming, memorySlopeMbPerMinute, trafficMs }: SoakReport): string[] {
  const grows = trafficMs >= SLOPE_TELLS_AFTER_MS && memorySlopeMbPerMinute > FLAT_MB_PER_MINUTE
  return [
    ...violations,
    ...lostIncoming.map(text => `No event reported "${text}".`),
    ...(grows ? [`Memory grows by ${memorySlopeMbPerMinute.toFixed(1)} MB per minute.`] : []),
  ]
}

/** One after the other: to ask for all at once, again and again, would be a load of its own. */
async function untilConnected(admin: AdminClient, players: readonly Player[]): Promise<void> {
  const waiting = new Set(players.map(({ client }) => client.id))
  const look = async () => {
    await sleep(POLL_EVERY_MS)
    for (const id of waiting) {
      const { state } = await patiently(() => admin.connection(id))
      if (state === 'connected') waiting.delete(id)
    }
    return waiting.size === 0
  }
  await until('every instance to be connected', look, CONNECTED_WITHIN_MS)
}

/** @throws Error when `work` takes longer */
async function within(limitMs: number, work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`Callers have waited ${limitMs} ms in vain for a 202.`)), limitMs)
  await Promise.race([work, promise]).finally(() => clearTimeout(timer))
}

/** Counts requests to write a message again, from now on. @returns reads the count */
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

function progressOf(stage: Stage, trouble: Trouble, scales: Scales): string {
  const [accepted, incoming] = [stage.loads.flatMap(load => load.accepted), stage.loads.flatMap(load => load.incoming)]
  return [
    `${accepted.length} texts accepted`,
    `${incoming.length} came in`,
    `${stage.recorder.arrivals.length} events`,
    `${trouble.total} faults`,
    `${Math.round(scales.latest)} MB`,
  ].join(', ')
}
