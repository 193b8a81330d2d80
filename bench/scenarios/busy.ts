/**
 * Calls while texts are being sent: 1, 8 and 64 connected instances send a backlog as fast as they can, and 16 callers post
 * further texts through them at the same time. Each caller posts the next text when the last one is accepted, to each
 * contact of each instance in turn, so every instance keeps a backlog. The instances have 1,024 contacts together.
 *
 * The reference is the same 16 callers on the same service while nothing is sent: the simulator's process is suspended, as
 * in `accept`. Busy and quiet rounds alternate.
 *
 * In the second part, 100 calls per second are posted at fixed times, without waiting for earlier
 * answers. Their latency counts from the scheduled moment. The reference is again the quiet service.
 *
 * The simulator works only during the busy rounds, on the same cores. The notes give the processor time of the service, so a
 * service that waits for a core can be distinguished from one that is busy itself.
 *
 * Not measured: webhooks, first messages to a contact, TLS, the network. With `--long`, the rounds are longer.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { NewInstance } from '../../test/api-client.ts'
import { until } from '../../test/until.ts'
import { alternate, type Figure, figureOf, short } from '../harness/figure.ts'
import { linkInstances, type SimulatedNetwork, startNetwork, untilConnected } from '../harness/network.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { processorMs, type RunningService, startService } from '../harness/service.ts'
import { median } from '../harness/statistics.ts'
import { contactNumbers, textRequest } from '../harness/text.ts'
import type { Latencies, LoadProcess } from '../processes/load.ts'

const SENDING = [1, 8, 64]
const CALLERS = 16
/** The contacts of all instances together: enough that few texts wait for the same contact, as with a business's customers. */
const CHATS = 1_024
const QUICK_CHATS = 128
/** Posted before the first round, while the network is silent. Without a backlog, instances could run out of texts. */
const BACKLOG = 20_000
const QUICK_BACKLOG = 5_000
/** Enough connections that no call waits for one, unless answers take over 1 s. */
const PACE = { perSecond: 100, connections: 100 }
/** The target for one instance. */
const FLOOR = { kind: 'at least', ratio: 0.5 } as const
const P99_LIMIT = { kind: 'limit', value: 25 } as const
/** The time until the service has adapted to a silent network, or sends at full speed again. */
const SETTLE_MS = 1_000
const FIRST_SENT_WITHIN_MS = 120_000
const WARM_UP_MS = 3_000

/** Quiet rounds must end before the service stops waiting for an acknowledgement, after 15 s. */
const TIMES = {
  quick: { rounds: 1, closedMs: 1_000, openMs: 2_000 },
  short: { rounds: 2, closedMs: 2_000, openMs: 5_000 },
  long: { rounds: 3, closedMs: 4_000, openMs: 10_000 },
}

export const busy: Scenario = {
  name: 'busy',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const network = await startNetwork(cleanUp)
    const load = cleanUp.use(await startProcess<LoadProcess>('load.ts'))
    const figures: Figure[] = []
    for (const count of bench.quick ? SENDING.slice(0, 2) : SENDING) {
      figures.push(...(await measureSending(bench, network, load, count)))
    }
    return figures
  },
}

/** The measurements of one round. */
interface Round extends Latencies {
  perSecond: number
  /** Texts per second that WhatsApp acknowledged during the round. */
  sentPerSecond: number
  /** Processor time of the service per unit of elapsed time. */
  processors: number
}

type Post = () => Promise<Latencies & { perSecond: number }>

async function measureSending(
  bench: Bench,
  network: SimulatedNetwork,
  load: Remote<LoadProcess>,
  count: number,
): Promise<Figure[]> {
  await using service = await startService(await bench.createDatabase(), { WHATSAPP_URL: network.url })
  bench.say(`linking ${count} instances`)
  const instances = await linkInstances(service, network, count)
  const requests = contactNumbers((bench.quick ? QUICK_CHATS : CHATS) / count).flatMap(to =>
    instances.map(({ token }) => textRequest(token, to)),
  )
  const target = { url: service.url, requests, connections: CALLERS, expectedStatus: 202 }
  await load.call('post', { ...target, count: requests.length })
  await untilSent(service, instances)

  const { rounds, closedMs, openMs } = TIMES[bench.quick ? 'quick' : bench.long ? 'long' : 'short']
  const run: Post = () => load.call('run', { ...target, warmUpMs: 300, durationMs: closedMs })
  const pace: Post = async () => {
    const latencies = await load.call('pace', { ...target, ...PACE, durationMs: openMs })
    return { ...PACE, ...latencies }
  }
  network.fallSilent()
  await load.call('post', { ...target, count: bench.quick ? QUICK_BACKLOG : BACKLOG })
  network.goOn()
  await load.call('run', { ...target, warmUpMs: 0, durationMs: WARM_UP_MS })

  async function alternateRounds(post: Post, figureIn: (round: Round) => number) {
    const observed: Record<'quiet' | 'busy', Round[]> = { quiet: [], busy: [] }
    const values = await alternate(
      rounds,
      async () => {
        network.fallSilent()
        const round = await observe(service, post, async () => 0)
        network.goOn()
        await untilConnected(service.admin, instances)
        observed.quiet.push(round)
        return figureIn(round)
      },
      async () => {
        const round = await observe(service, post, network.countAcknowledged)
        await checkBacklog(service, instances)
        observed.busy.push(round)
        return figureIn(round)
      },
      line => bench.say(`${count} sending: ${line}`),
    )
    return { ...values, notes: [`busy: ${textOf(observed.busy)}`, `quiet: ${textOf(observed.quiet)}`] }
  }

  const common = { store: bench.store, against: 'while nothing is sent' }
  const who = count === 1 ? 'one instance sends' : `${count} instances send`
  return [
    figureOf({
      ...common,
      name: `accepted while ${who}`,
      unit: 'per second',
      ...(await alternateRounds(run, ({ perSecond }) => perSecond)),
      ...(count === 1 && { floor: FLOOR }),
    }),
    figureOf({
      ...common,
      name: `p99 at ${PACE.perSecond} calls per second while ${who}`,
      unit: 'ms',
      ...(await alternateRounds(pace, ({ p99Ms }) => p99Ms)),
      ...(count === 1 && { floor: P99_LIMIT }),
    }),
  ]
}

/**
 * Measures one round, once the service has adapted to the network's new behaviour.
 * @param countSent the texts that WhatsApp has acknowledged
 */
async function observe(service: RunningService, post: Post, countSent: () => Promise<number>): Promise<Round> {
  await sleep(SETTLE_MS)
  const sentBefore = await countSent()
  const usedBeforeMs = processorMs(service.pid)
  const startedAt = performance.now()
  const measured = await post()
  const passedMs = performance.now() - startedAt
  const processors = (processorMs(service.pid) - usedBeforeMs) / passedMs
  return { ...measured, processors, sentPerSecond: (((await countSent()) - sentBefore) * 1_000) / passedMs }
}

/** Waits until the first texts to all contacts are sent: they need a look-up and a new session. */
async function untilSent({ admin }: RunningService, instances: readonly NewInstance[]): Promise<void> {
  for (const { id } of instances) {
    const isEmpty = async () => (await admin.listMessages(id, '?state=queued&limit=1')).length === 0
    await until('the first texts to be sent', isEmpty, FIRST_SENT_WITHIN_MS)
  }
}

/** @throws Error if an instance may have had nothing to send */
async function checkBacklog({ admin }: RunningService, instances: readonly NewInstance[]): Promise<void> {
  for (const { id } of instances) {
    const [queued] = await admin.listMessages(id, '?state=queued&limit=1')
    if (!queued) throw new Error(`${id} has no backlog any more.`)
  }
}

function textOf(rounds: readonly Round[]): string {
  const of = (figureIn: (round: Round) => number) => short(median(rounds.map(figureIn)))
  return (
    `median ${of(round => round.medianMs)}, p95 ${of(round => round.p95Ms)}, p99 ${of(round => round.p99Ms)} ms; ` +
    `${of(round => round.sentPerSecond)} texts sent per second; the service uses ${of(round => round.processors)} cores`
  )
}
