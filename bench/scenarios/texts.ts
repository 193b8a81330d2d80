/**
 * Texts of one instance to known contacts, posted over HTTP as fast as they are accepted. The time runs from the first
 * post until WhatsApp's acknowledgement of the last text is recorded. Delivery and read receipts that arrive in that
 * time are recorded too, each with its event.
 *
 * The reference is bare Baileys with its keys in memory. It sends the same texts to the same number of contacts, one at a
 * time to each, until the last acknowledgement. Both use the same simulated WhatsApp in its own process. Both figures
 * include the work of the simulator, which decrypts every copy.
 *
 * Then the same with two instances on two threads. The reference is still the single process of bare Baileys. While
 * texts are sent, 100 further calls per second are posted at fixed times. Their texts count too, and their latency
 * counts from the scheduled moment.
 *
 * Not measured: first messages to a contact (look-up and new session), groups, webhooks.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient, NewInstance } from '../../test/api-client.ts'
import type { PostRequest } from '../harness/caller.ts'
import { alternate, type Figure, figureOf, plainFigure, short } from '../harness/figure.ts'
import { linkInstances, type SimulatedNetwork, startNetwork } from '../harness/network.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { type RunningService, startService } from '../harness/service.ts'
import { median } from '../harness/statistics.ts'
import { TEXT, textRequest } from '../harness/text.ts'
import type { BareBaileys } from '../processes/bare-baileys.ts'
import type { LoadProcess } from '../processes/load.ts'

const CONTACTS = Array.from({ length: 16 }, (_, index) => `55119876600${10 + index}`)
const FLOOR = { sqlite: { kind: 'at least', ratio: 0.9 }, postgres: { kind: 'at least', ratio: 0.8 } } as const
const PAIR_FLOOR = { kind: 'at least', ratio: 0.9 } as const
const PAIR = 2
/** During the texts of the pair. Enough connections that a call finds a free one, unless answers take over 1 s. */
const PACE = { perSecond: 100, connections: 100, durationMs: 3_000 }
const QUICK_PACE = { ...PACE, durationMs: 1_000 }
const P99_LIMIT_MS = 25
const SENT_WITHIN_MS = 120_000
const POLL_EVERY_MS = 200
const NEWEST = 200
/** The last read receipts are due 600 ms after the acknowledgement, and belong to the round that caused them. */
const RECEIPTS_MS = 1_500

export const texts: Scenario = {
  name: 'texts',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const network = await startNetwork(cleanUp)
    const load = cleanUp.use(await startProcess<LoadProcess>('load.ts'))
    const bare = cleanUp.use(await startProcess<BareBaileys>('bare-baileys.ts'))
    await network.scanQr(await bare.call('link', network.url))
    await bare.call('linked')
    async function sendBare(count: number): Promise<number> {
      const seconds = await bare.call('send', { contacts: CONTACTS, text: TEXT, count })
      await sleep(RECEIPTS_MS)
      return count / seconds
    }
    await sendBare(CONTACTS.length * 2)
    return [await measureOne(bench, network, load, sendBare), ...(await measurePair(bench, network, load, sendBare))]
  },
}

type SendBare = (count: number) => Promise<number>

async function measureOne(
  bench: Bench,
  network: SimulatedNetwork,
  load: Remote<LoadProcess>,
  sendBare: SendBare,
): Promise<Figure> {
  await using service = await startService(await bench.createDatabase(), { WHATSAPP_URL: network.url })
  const instances = await linkInstances(service, network, 1)
  const requests = requestsOf(instances)
  const count = bench.quick ? 500 : 2_000
  async function send(count: number): Promise<number> {
    const startedAt = Date.now()
    await load.call('post', { url: service.url, requests, count, expectedStatus: 202 })
    return count / (await secondsUntilSent(service, instances, startedAt))
  }
  await send(requests.length * 2)
  const rounds = await alternate(
    bench.quick ? 2 : 5,
    () => sendBare(count),
    () => send(count),
    bench.say,
  )
  return figureOf({
    name: 'texts through one instance',
    store: bench.store,
    unit: 'per second',
    against: 'bare Baileys',
    ...rounds,
    floor: FLOOR[bench.store],
  })
}

async function measurePair(
  bench: Bench,
  network: SimulatedNetwork,
  load: Remote<LoadProcess>,
  sendBare: SendBare,
): Promise<Figure[]> {
  const environment = { WHATSAPP_URL: network.url, WHATSAPP_THREADS: String(PAIR) }
  await using service = await startService(await bench.createDatabase(), environment)
  const instances = await linkInstances(service, network, PAIR)
  const target = { url: service.url, requests: requestsOf(instances), expectedStatus: 202 }
  const pace = bench.quick ? QUICK_PACE : PACE
  const paced = (pace.perSecond * pace.durationMs) / 1_000
  const p99s: number[] = []
  async function send(count: number): Promise<number> {
    const startedAt = Date.now()
    await load.call('post', { ...target, count: count - paced })
    p99s.push((await load.call('pace', { ...target, ...pace })).p99Ms)
    return count / (await secondsUntilSent(service, instances, startedAt))
  }
  const count = bench.quick ? 1_000 : 3_000
  // As many as in a round: the bare process has sent before, so its code is compiled already.
  await send(count)
  p99s.length = 0
  const rounds = await alternate(
    bench.quick ? 2 : 5,
    () => sendBare(count),
    () => send(count),
    bench.say,
  )
  const common = { store: bench.store }
  return [
    figureOf({
      ...common,
      name: 'texts through two instances on two threads',
      unit: 'per second',
      against: 'bare Baileys, one process',
      ...rounds,
      floor: PAIR_FLOOR,
    }),
    plainFigure({
      ...common,
      name: `p99 at ${pace.perSecond} calls per second meanwhile`,
      unit: 'ms',
      value: median(p99s),
      atMost: P99_LIMIT_MS,
      notes: [`rounds: ${p99s.map(short).join(', ')} ms`],
    }),
  ]
}

function requestsOf(instances: readonly NewInstance[]): PostRequest[] {
  return CONTACTS.flatMap(to => instances.map(({ token }) => textRequest(token, to)))
}

/** Waits for the receipts too. */
async function secondsUntilSent(
  { admin }: RunningService,
  instances: readonly NewInstance[],
  startedAt: number,
): Promise<number> {
  let last = 0
  for (const { id } of instances) last = Math.max(last, await lastSentAt(admin, id))
  await sleep(RECEIPTS_MS)
  return (last - startedAt) / 1_000
}

/**
 * When the last message was sent, once the queue is empty. It is one of the newest, because each contact's messages are
 * sent in order.
 */
async function lastSentAt(admin: AdminClient, instanceId: string): Promise<number> {
  const deadline = performance.now() + SENT_WITHIN_MS
  // Polled rarely, so that it does not affect the measurement.
  while ((await admin.listMessages(instanceId, '?state=queued&limit=1')).length > 0) {
    if (performance.now() > deadline) throw new Error(`Messages were still queued after ${SENT_WITHIN_MS} ms.`)
    await sleep(POLL_EVERY_MS)
  }
  const newest = await admin.listMessages(instanceId, `?limit=${NEWEST}`)
  return Math.max(...newest.map(({ sentAt }) => Date.parse(sentAt!)))
}
