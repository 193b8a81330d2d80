/**
 * Delays through the whole service, at 20, 200 and 1,000 messages per second. Messages are posted and written at fixed times,
 * spread over 16 connected instances with 8 contacts each, without waiting for earlier ones. Two delays are measured:
 *
 * - from the moment when an incoming message leaves the simulated network to the arrival of its webhook at the receiver,
 * - from the scheduled moment of a call to the text's arrival in the inbox of the recipient's simulated phone. The events of
 *   these texts are posted to the receiver too.
 *
 * The reference is a bare gateway: Fastify, Baileys with its keys in memory and Node's HTTP client in one process, which records
 * nothing. Both use the same simulated WhatsApp and the same receiver.
 *
 * The simulator, the load and the receiver share the cores with the service. At 1,000 per second they may be the limit. If a
 * rate was not reached, a note gives the rate at which messages arrived. Such a delay is mostly waiting time.
 *
 * Not measured: first messages to a contact, groups, TLS, the network.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { instanceClient } from '../../test/api-client.ts'
import { until } from '../../test/until.ts'
import { alternate, type Figure, type Floor, figureOf, short } from '../harness/figure.ts'
import { linkInstances, type SimulatedNetwork, startNetwork } from '../harness/network.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { startService } from '../harness/service.ts'
import { median, quantile } from '../harness/statistics.ts'
import { contactNumbers, TEXT, textRequest } from '../harness/text.ts'
import type { BareGateway } from '../processes/bare-gateway.ts'
import type { LoadProcess } from '../processes/load.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'

const INSTANCES = 16
const CONTACTS = contactNumbers(8)
const CONNECTIONS = 100
/** Seconds of each round, by rate. */
const SECONDS = new Map([
  [20, 15],
  [200, 10],
  [1_000, 5],
])
const QUICK_SECONDS = 2
const WARM_UP = { perSecond: 100, seconds: 5 }
/** The limit of the p99 from a stanza to its webhook, at this rate. */
const LIMIT: { perSecond: number; floor: Floor } = { perSecond: 200, floor: { kind: 'limit', value: 15 } }
const ARRIVED_WITHIN_MS = 120_000
/** The last read receipts are due 600 ms after the acknowledgement, and belong to the round that caused them. */
const RECEIPTS_MS = 1_500
/** A rate below this share of the expected one counts as not reached. */
const REACHED_SHARE = 0.95

export const latency: Scenario = {
  name: 'latency',
  stores: ['sqlite', 'postgres'],
  onlyIfNamed: true,

  async measure(bench, cleanUp) {
    const network = await startNetwork(cleanUp)
    const receiver = cleanUp.use(await startProcess<ReceiverProcess>('receiver.ts'))
    const load = cleanUp.use(await startProcess<LoadProcess>('load.ts'))
    const webhookUrl = `${await receiver.call('listen')}/incoming`
    const environment = { network, receiver, load }
    const bare = await startBare(network, webhookUrl, cleanUp)
    bench.say(`linking ${INSTANCES} instances`)
    const ours = await startOurs(bench, network, webhookUrl, cleanUp)

    bench.say('first messages')
    for (const gateway of [bare, ours]) await warmUp(environment, gateway)
    const figures: Figure[] = []
    for (const direction of DIRECTIONS) {
      for (const [perSecond, seconds] of SECONDS) {
        figures.push(
          await compare(bench, direction, perSecond, gateway =>
            direction.measure(
              environment,
              gateway === 'bare' ? bare : ours,
              perSecond,
              bench.quick ? QUICK_SECONDS : seconds,
            ),
          ),
        )
      }
    }
    return figures
  },
}

interface Environment {
  network: SimulatedNetwork
  receiver: Remote<ReceiverProcess>
  load: Remote<LoadProcess>
}

/** A program between callers and WhatsApp: the service or the bare gateway. */
interface Gateway {
  url: string
  tokens: string[]
  /** The numbers of its accounts. */
  phones: string[]
}

/** One round. */
interface Round {
  medianMs: number
  p99Ms: number
  /** The rate at which messages arrived. */
  perSecond: number
}

interface Direction {
  name: string
  isIncoming: boolean
  measure(environment: Environment, gateway: Gateway, perSecond: number, seconds: number): Promise<Round>
}

const DIRECTIONS: readonly Direction[] = [
  { name: 'from a stanza to its webhook', isIncoming: true, measure: measureIncoming },
  { name: 'from a call to the phone', isIncoming: false, measure: measureOutgoing },
]

async function startBare(
  network: SimulatedNetwork,
  webhookUrl: string,
  cleanUp: AsyncDisposableStack,
): Promise<Gateway> {
  const bare = cleanUp.use(await startProcess<BareGateway>('bare-gateway.ts'))
  const phones: string[] = []
  for (let index = 0; index < INSTANCES; index += 1) {
    phones.push(await network.scanQr(await bare.call('link', network.url)))
    await bare.call('linked')
  }
  await bare.call('postTo', webhookUrl)
  return { url: await bare.call('listen'), tokens: phones.map((_, index) => index.toString()), phones }
}

async function startOurs(
  bench: Bench,
  network: SimulatedNetwork,
  webhookUrl: string,
  cleanUp: AsyncDisposableStack,
): Promise<Gateway> {
  const service = cleanUp.use(await startService(await bench.createDatabase(), { WHATSAPP_URL: network.url }))
  const instances = await linkInstances(service, network, INSTANCES)
  const phones: string[] = []
  for (const { id, token } of instances) {
    await instanceClient(() => service.url, id, token).setWebhook(webhookUrl)
    phones.push((await service.admin.connection(id)).phone!)
  }
  return { url: service.url, tokens: instances.map(({ token }) => token), phones }
}

/** The first message in each chat needs a look-up or a new session. The others give V8 the time to compile hot code. */
async function warmUp(environment: Environment, gateway: Gateway): Promise<void> {
  const { network, load } = environment
  const requests = requestsOf(gateway)
  const before = await network.countAcknowledged()
  await load.call('post', { url: gateway.url, requests, count: requests.length, expectedStatus: 202 })
  const areSent = async () => (await network.countAcknowledged()) >= before + requests.length
  await until('the first texts to be sent', areSent, ARRIVED_WITHIN_MS)
  for (const { measure } of DIRECTIONS) await measure(environment, gateway, WARM_UP.perSecond, WARM_UP.seconds)
}

async function measureIncoming(
  { network, receiver }: Environment,
  { phones }: Gateway,
  perSecond: number,
  seconds: number,
): Promise<Round> {
  const count = perSecond * seconds
  await receiver.call('expect', count)
  const chats = CONTACTS.flatMap(from => phones.map(to => ({ from, to })))
  const leftAt = await network.write(chats, perSecond, count)
  return roundOf(leftAt, new Map(await receiver.call('incoming')))
}

async function measureOutgoing(
  { network, load }: Environment,
  gateway: Gateway,
  perSecond: number,
  seconds: number,
): Promise<Round> {
  await network.observeTimes()
  const paced = { perSecond, durationMs: seconds * 1_000, connections: CONNECTIONS, numbered: true }
  const target = { url: gateway.url, requests: requestsOf(gateway), expectedStatus: 202 }
  const { scheduledAt } = await load.call('pace', { ...target, ...paced })
  const inInboxAt = await network.inboxTimes(scheduledAt.length, ARRIVED_WITHIN_MS)
  await sleep(RECEIPTS_MS)
  return roundOf(
    scheduledAt.map((at, index) => [`${TEXT} ${index}`, at]),
    new Map(inInboxAt),
  )
}

function requestsOf({ tokens }: Gateway) {
  return CONTACTS.flatMap(to => tokens.map(token => textRequest(token, to)))
}

/** @throws Error if a message did not arrive */
function roundOf(begunAt: readonly [string, number][], endedAt: ReadonlyMap<string, number>): Round {
  const ends: number[] = []
  const delays = begunAt.map(([key, begun]) => {
    const end = endedAt.get(key)
    if (end === undefined) throw new Error(`${key} did not arrive.`)
    ends.push(end)
    return end - begun
  })
  const seconds = (Math.max(...ends) - Math.min(...ends)) / 1_000
  return { medianMs: median(delays), p99Ms: quantile(delays, 0.99), perSecond: (ends.length - 1) / seconds }
}

async function compare(
  bench: Bench,
  { name, isIncoming }: Direction,
  perSecond: number,
  measure: (gateway: 'bare' | 'ours') => Promise<Round>,
): Promise<Figure> {
  const rounds: Record<'bare' | 'ours', Round[]> = { bare: [], ours: [] }
  async function p99Of(gateway: 'bare' | 'ours'): Promise<number> {
    const round = await measure(gateway)
    rounds[gateway].push(round)
    return round.p99Ms
  }
  const p99s = await alternate(
    bench.quick ? 1 : bench.long ? 4 : 2,
    () => p99Of('bare'),
    () => p99Of('ours'),
    line => bench.say(`${name}, ${perSecond} per second: ${line}`),
  )
  return figureOf({
    name: `${name} at ${perSecond.toLocaleString('en')} per second: p99`,
    store: bench.store,
    unit: 'ms',
    against: 'bare gateway',
    ...p99s,
    ...(isIncoming && perSecond === LIMIT.perSecond && { floor: LIMIT.floor }),
    notes: [
      `median: reference ${medianOf(rounds.bare)} ms, ours ${medianOf(rounds.ours)} ms`,
      ...notReached('reference', rounds.bare, perSecond),
      ...notReached('ours', rounds.ours, perSecond),
    ],
  })
}

function medianOf(rounds: readonly Round[]): string {
  return short(median(rounds.map(({ medianMs }) => medianMs)))
}

function notReached(who: string, rounds: readonly Round[], expected: number): string[] {
  const reached = median(rounds.map(({ perSecond }) => perSecond))
  return reached >= expected * REACHED_SHARE ? [] : [`RATE NOT REACHED: ${who} ${short(reached)} per second`]
}
