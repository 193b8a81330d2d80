/**
 * Texts through the whole service, sustained for two minutes by 1 and by 64 instances: a text is posted and accepted, sent
 * to WhatsApp, decrypted by the recipient's simulated phone, and `sent`, `delivered` and `read` are each recorded and posted to a
 * receiver. 4,000 texts are on their way all the time: the next one is posted when one is reported as read. The rate is that of
 * the `read` events. By the end, each event must have arrived for every text.
 *
 * The reference is the sum of the bare parts, each measured alone on the same cores before and after the two minutes: the time
 * per text of a bare Fastify route that accepts it, of bare Baileys that sends it from the same number of accounts, and of a bare
 * loop that signs and posts three events. The parts run one after the other, so each of them has all cores.
 *
 * Memory and processor time are those of the service's process. On PostgreSQL the database's processes are not included.
 *
 * Not measured: first messages to a contact, groups, TLS, the network.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { instanceClient } from '../../test/api-client.ts'
import { until } from '../../test/until.ts'
import { type Figure, figureOf, plainFigure, short } from '../harness/figure.ts'
import { linkInstances, type SimulatedNetwork, startNetwork } from '../harness/network.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { processorMs, residentMb, startService } from '../harness/service.ts'
import { contactNumbers, TEXT, textRequest } from '../harness/text.ts'
import type { BareBaileys } from '../processes/bare-baileys.ts'
import type { BareFastify } from '../processes/bare-fastify.ts'
import type { BarePoster } from '../processes/bare-poster.ts'
import type { LoadProcess } from '../processes/load.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'
import type { RoundTrips } from '../processes/round-trips.ts'

/** `bareContacts`: the contacts of each account of bare Baileys, which sends one text at a time to each contact. */
const SIZES = [
  { instances: 1, contacts: 1_024, bareContacts: 16 },
  { instances: 64, contacts: 16, bareContacts: 4 },
]
const SECONDS = 120
const QUICK_SECONDS = 5
const WINDOW = 4_000
const CALLERS = 16
const WARM_UP_MS = 5_000
const FIRST_READ_WITHIN_MS = 180_000
const EVENTS_PER_TEXT = 3
/** As in `webhooks`. */
const POSTS_PER_INSTANCE = 6
const MAX_POSTING_INSTANCES = 32
/** Texts of one measurement of a bare part. */
const BARE_TEXTS = 2_000
const BARE_ACCEPT_MS = 2_000
const RECEIPTS_MS = 1_500
const SECRET = `whsec_${Buffer.alloc(32, 'bench').toString('base64')}`
const EVENT = JSON.stringify({
  event: 'message.delivered',
  instanceId: 'inst_brrsj8q30mzc',
  timestamp: '2026-01-01T00:00:00.000Z',
  data: { id: 'msg_01ARZ3NDEKTSV4RRFFQ69G5FAV', to: '5511987660010', status: 'delivered' },
})

export const whole: Scenario = {
  name: 'whole',
  stores: ['sqlite', 'postgres'],
  onlyIfNamed: true,

  async measure(bench, cleanUp) {
    const network = await startNetwork(cleanUp)
    const figures: Figure[] = []
    for (const size of SIZES) figures.push(...(await measureSize(bench, network, size)))
    return figures
  },
}

interface Size {
  instances: number
  /** Contacts of each instance. */
  contacts: number
  bareContacts: number
}

async function measureSize(bench: Bench, network: SimulatedNetwork, size: Size): Promise<Figure[]> {
  await using parts = await BareParts.start(network, size, bench.quick)
  const who = size.instances === 1 ? 'one instance' : `${size.instances} instances`
  const before = await parts.measure()
  bench.say(`${who}: the bare parts take ${before.text}`)
  const ours = await carry(bench, network, size)
  bench.say(`${who}: ${short(ours.perSecond)} per second`)
  const after = await parts.measure()
  const plain = { store: bench.store, notes: [] }
  return [
    figureOf({
      store: bench.store,
      name: `texts through everything, ${who}`,
      unit: 'per second',
      against: 'sum of the bare parts',
      reference: [before.perSecond, after.perSecond],
      ours: [ours.perSecond],
      notes: [
        `time per text of the bare parts: ${before.text} before, ${after.text} after`,
        `${short(ours.texts)} texts in ${short(ours.seconds)} s; the service uses ${short(ours.processors)} cores`,
      ],
    }),
    plainFigure({ ...plain, name: `processor time per text, ${who}`, unit: 'ms', value: ours.processorMsPerText }),
    plainFigure({
      ...plain,
      name: `resident memory after them, ${who}`,
      unit: 'MB',
      value: ours.memoryMb.after,
      notes: [`${short(ours.memoryMb.before)} MB before`],
    }),
  ]
}

/** Sends through the service. */
async function carry(bench: Bench, network: SimulatedNetwork, size: Size) {
  await using trips = await startProcess<RoundTrips>('round-trips.ts')
  const webhookUrl = await trips.call('listen')
  await using service = await startService(await bench.createDatabase(), { WHATSAPP_URL: network.url })
  const instances = await linkInstances(service, network, size.instances)
  for (const { id, token } of instances) {
    await instanceClient(() => service.url, id, token).setWebhook(`${webhookUrl}/events`)
  }
  const requests = contactNumbers(size.contacts).flatMap(to => instances.map(({ token }) => textRequest(token, to)))
  const target = { url: service.url, requests, connections: CALLERS, expectedStatus: 202 }
  await trips.call('begin', { ...target, window: WINDOW })
  const isWarm = async () => (await trips.call('count')).read >= requests.length
  await until('the first texts to be read', isWarm, FIRST_READ_WITHIN_MS)
  await sleep(WARM_UP_MS)

  const readBefore = (await trips.call('count')).read
  const usedBeforeMs = processorMs(service.pid)
  const beforeMb = residentMb(service.pid)
  const startedAt = performance.now()
  await sleep((bench.seconds ?? (bench.quick ? QUICK_SECONDS : SECONDS)) * 1_000)
  const texts = (await trips.call('count')).read - readBefore
  const seconds = (performance.now() - startedAt) / 1_000
  const usedMs = processorMs(service.pid) - usedBeforeMs
  const memoryMb = { before: beforeMb, after: residentMb(service.pid) }
  const { posted, sent, delivered, read } = await trips.call('end')
  if (sent !== posted || delivered !== posted || read !== posted) {
    throw new Error(`Of ${posted} texts, ${sent} were reported as sent, ${delivered} delivered, ${read} read.`)
  }
  const processors = usedMs / 1_000 / seconds
  return { texts, seconds, perSecond: texts / seconds, processorMsPerText: usedMs / texts, processors, memoryMb }
}

/** The programs that do a part of the work without guarantees. */
class BareParts implements AsyncDisposable {
  readonly #baileys: Remote<BareBaileys>
  readonly #size: Size
  readonly #texts: number

  private constructor(baileys: Remote<BareBaileys>, size: Size, texts: number) {
    this.#baileys = baileys
    this.#size = size
    this.#texts = texts
  }

  static async start(network: SimulatedNetwork, size: Size, quick: boolean): Promise<BareParts> {
    const baileys = await startProcess<BareBaileys>('bare-baileys.ts')
    const parts = new BareParts(baileys, size, quick ? BARE_TEXTS / 4 : BARE_TEXTS)
    for (let linked = 0; linked < size.instances; linked += 1) {
      await network.scanQr(await baileys.call('link', network.url))
      await baileys.call('linked')
    }
    await parts.#send(2 * size.instances * size.bareContacts)
    return parts
  }

  async measure(): Promise<{ perSecond: number; text: string }> {
    const [accept, send, post] = [await this.#accept(), await this.#send(this.#texts), await this.#post()]
    const text = `${short(accept)} ms to accept, ${short(send)} ms to send, ${short(post)} ms to post ${EVENTS_PER_TEXT} events`
    return { perSecond: 1_000 / (accept + send + post), text }
  }

  /** @returns milliseconds per text, like `#send` and `#post` */
  async #accept(): Promise<number> {
    await using bare = await startProcess<BareFastify>('bare-fastify.ts')
    await using load = await startProcess<LoadProcess>('load.ts')
    const requests = Array.from({ length: CALLERS }, () => textRequest('token', '5511987660010'))
    const target = { url: await bare.call('listen'), requests, expectedStatus: 202 }
    const { perSecond } = await load.call('run', { ...target, warmUpMs: BARE_ACCEPT_MS, durationMs: BARE_ACCEPT_MS })
    return 1_000 / perSecond
  }

  async #send(count: number): Promise<number> {
    const seconds = await this.#baileys.call('send', {
      contacts: contactNumbers(this.#size.bareContacts),
      text: TEXT,
      count,
    })
    await sleep(RECEIPTS_MS)
    return (seconds * 1_000) / count
  }

  async #post(): Promise<number> {
    await using receiver = await startProcess<ReceiverProcess>('receiver.ts')
    await using poster = await startProcess<BarePoster>('bare-poster.ts')
    const url = `${await receiver.call('listen')}/events`
    const bodies = Array.from({ length: this.#texts * EVENTS_PER_TEXT }, () => EVENT)
    const concurrency = POSTS_PER_INSTANCE * Math.min(this.#size.instances, MAX_POSTING_INSTANCES)
    await receiver.call('expect', bodies.length)
    const startedAt = performance.now()
    await poster.call('post', { url, secret: SECRET, bodies, concurrency })
    return (performance.now() - startedAt) / this.#texts
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#baileys[Symbol.asyncDispose]()
  }
}
