/**
 * Webhook deliveries from a backlog of 32 instances. Incoming messages are recorded through the store while no service
 * runs. Then the service starts, and the receiver measures the time from the first request to the last. The round fails
 * unless every attempt was recorded: once the service has stopped, no delivery may be pending.
 *
 * Then the same with three endpoints for each instance and a third of the events, which makes the same number of deliveries.
 *
 * The reference is a bare undici loop that signs the same bytes (both signatures) and posts them to the same receiver, with
 * the concurrency of Pombal's first attempts. Both are restarted for each round.
 *
 * Not measured: slow or failing consumers, TLS, DNS look-ups, the network. The instances are not linked to WhatsApp.
 */

import { DEFAULT_ENDPOINT } from '../../src/domain/events/endpoint.ts'
import type { EndpointId } from '../../src/domain/ids.ts'
import { addEndpoints, type Consumer, createConsumer, recordBacklog } from '../harness/consumers.ts'
import type { BenchDatabase } from '../harness/databases.ts'
import { alternate, type Figure, figureOf } from '../harness/figure.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { type RunningService, startService } from '../harness/service.ts'
import type { BarePoster } from '../processes/bare-poster.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'

const INSTANCES = 32
/** First attempts that one instance may have in flight: 8, less the 2 reserved for retries (contract §5). */
const IN_FLIGHT_EACH = 6
/** The number of endpoints of each instance; one measurement for each number. */
const ENDPOINTS = [1, 3]
const FLOOR = { kind: 'at least', ratio: 0.35 } as const

export const webhooks: Scenario = {
  name: 'webhooks',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const receiver = cleanUp.use(await startProcess<ReceiverProcess>('receiver.ts'))
    const url = `${await receiver.call('listen')}/events`
    const figures: Figure[] = []
    for (const endpoints of ENDPOINTS) figures.push(await measureWith(endpoints, bench, receiver, url))
    return figures
  },
}

async function measureWith(
  endpoints: number,
  bench: Bench,
  receiver: Remote<ReceiverProcess>,
  url: string,
): Promise<Figure> {
  const database = await bench.createDatabase()
  const consumers = await createConsumers(database, url, endpoints)
  const each = Math.round((bench.quick ? 100 : 400) / endpoints)
  const backlog = { receiver, database, consumers, each, endpoints, url }

  let bodies = await prepare(backlog)
  const rounds = await alternate(
    bench.quick ? 2 : 5,
    () => postBare(backlog, bodies),
    async () => {
      const rate = await postThroughPombal(backlog)
      bodies = await prepare(backlog)
      return rate
    },
    bench.say,
  )
  return figureOf({
    name: endpoints === 1 ? 'webhooks delivered' : `webhooks delivered, ${endpoints} endpoints each`,
    store: bench.store,
    unit: 'per second',
    against: 'bare undici',
    ...rounds,
    floor: FLOOR,
  })
}

/** Instances and their endpoints. */
type Consumers = Map<Consumer, EndpointId[]>

interface Backlog {
  receiver: Remote<ReceiverProcess>
  database: BenchDatabase
  consumers: Consumers
  /** Events of each consumer. */
  each: number
  /** Endpoints of each consumer. Each of them gets every event. */
  endpoints: number
  url: string
}

async function createConsumers(database: BenchDatabase, url: string, endpoints: number): Promise<Consumers> {
  const store = await database.openStore()
  const consumers: Consumers = new Map()
  for (let index = 0; index < INSTANCES; index += 1) {
    const consumer = await createConsumer(store, url)
    const others = await addEndpoints(store, consumer.instanceId, Array(endpoints - 1).fill(url))
    consumers.set(consumer, [DEFAULT_ENDPOINT, ...others])
  }
  await store.close()
  return consumers
}

/** @throws if a delivery is pending, because an earlier attempt was made and not recorded */
async function prepare({ database, consumers, each }: Backlog): Promise<string[]> {
  const store = await database.openStore()
  for (const [{ instanceId }, endpoints] of consumers) {
    for (const id of endpoints) {
      const first = await store.deliveries.listFirst(instanceId, 0, 1, id)
      const retries = await store.deliveries.listRetries(instanceId, 1, id)
      if (first.length > 0 || retries.length > 0) throw new Error('Not every attempt was recorded.')
    }
  }
  const bodies = await recordBacklog(store, [...consumers.keys()], each)
  await store.close()
  return bodies
}

async function postBare({ receiver, consumers, endpoints, url }: Backlog, recorded: string[]): Promise<number> {
  await using poster = await startProcess<BarePoster>('bare-poster.ts')
  const bodies = Array<string[]>(endpoints).fill(recorded).flat()
  const { secret } = consumers.keys().next().value!
  const posting = { url, secret, bodies, concurrency: INSTANCES * IN_FLIGHT_EACH }
  return await rateAt(receiver, bodies.length, () => poster.call('post', posting))
}

async function postThroughPombal({ receiver, database, consumers, each, endpoints }: Backlog): Promise<number> {
  let service: RunningService | undefined
  try {
    return await rateAt(receiver, consumers.size * each * endpoints, async () => {
      service = await startService(database)
    })
  } finally {
    await service?.stop()
  }
}

/** Requests per second, from the first to the last of `count`. */
async function rateAt(receiver: Remote<ReceiverProcess>, count: number, post: () => Promise<void>): Promise<number> {
  await receiver.call('expect', count)
  await post()
  const arrivals = await receiver.call('arrivals')
  return (count - 1) / ((arrivals.at(-1)! - arrivals[0]!) / 1000)
}
