/**
 * Webhook deliveries from a backlog of 32 instances. Incoming messages are recorded through the store while no service
 * runs. Then the service starts, and the receiver measures the time from the first request to the last. The round fails
 * unless every attempt was recorded: once the service has stopped, no delivery may be pending.
 *
 * The reference is a bare undici loop that signs the same bytes (both signatures) and posts them to the same receiver, with
 * the concurrency of Pombal's first attempts. Both are restarted for each round.
 *
 * Not measured: slow or failing consumers, TLS, DNS look-ups, the network. The instances are not linked to WhatsApp.
 */

import { type Consumer, createConsumer, recordBacklog } from '../harness/consumers.ts'
import type { BenchDatabase } from '../harness/databases.ts'
import { alternate, figureOf } from '../harness/figure.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Scenario } from '../harness/scenario.ts'
import { type RunningService, startService } from '../harness/service.ts'
import type { BarePoster } from '../processes/bare-poster.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'

const INSTANCES = 32
/** First attempts of one instance in flight: 8, less the 2 kept for retries (contract §5). */
const IN_FLIGHT_EACH = 6
const FLOOR = { kind: 'at least', ratio: 0.35 } as const

export const webhooks: Scenario = {
  name: 'webhooks',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const receiver = cleanUp.use(await startProcess<ReceiverProcess>('receiver.ts'))
    const url = `${await receiver.call('listen')}/events`
    const database = await bench.createDatabase()
    const consumers = await createConsumers(database, url)
    const each = bench.quick ? 100 : 400
    const backlog = { receiver, database, consumers, each, url }

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
    return [
      figureOf({
        name: 'webhooks delivered',
        store: bench.store,
        unit: 'per second',
        against: 'bare undici',
        ...rounds,
        floor: FLOOR,
      }),
    ]
  },
}

interface Backlog {
  receiver: Remote<ReceiverProcess>
  database: BenchDatabase
  consumers: readonly Consumer[]
  each: number
  url: string
}

async function createConsumers(database: BenchDatabase, url: string): Promise<Consumer[]> {
  const store = await database.openStore()
  const consumers: Consumer[] = []
  for (let index = 0; index < INSTANCES; index += 1) consumers.push(await createConsumer(store, url))
  await store.close()
  return consumers
}

/** @throws if a delivery is pending: an earlier attempt was made and not recorded */
async function prepare({ database, consumers, each }: Backlog): Promise<string[]> {
  const store = await database.openStore()
  for (const { instanceId } of consumers) {
    const first = await store.deliveries.listFirst(instanceId, 0, 1)
    const retries = await store.deliveries.listRetries(instanceId, { dueAt: 0, seq: 0 }, Number.MAX_SAFE_INTEGER, 1)
    if (first.length > 0 || retries.length > 0) throw new Error('Not every attempt was recorded.')
  }
  const bodies = await recordBacklog(store, consumers, each)
  await store.close()
  return bodies
}

async function postBare({ receiver, consumers, url }: Backlog, bodies: string[]): Promise<number> {
  await using poster = await startProcess<BarePoster>('bare-poster.ts')
  const posting = { url, secret: consumers[0]!.secret, bodies, concurrency: INSTANCES * IN_FLIGHT_EACH }
  return await rateAt(receiver, bodies.length, () => poster.call('post', posting))
}

async function postThroughPombal({ receiver, database, consumers, each }: Backlog): Promise<number> {
  let service: RunningService | undefined
  try {
    return await rateAt(receiver, consumers.length * each, async () => {
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
