/**
 * Isolation of an instance's endpoints: the delay of a new event at an endpoint that answers, from just before the event is
 * recorded until its request arrives, while the instance has nine others. Three of them never answer, three answer 500, and
 * three refuse the connection. Each new event goes to all ten, and is retried at the nine on the usual schedule. In the
 * reference, the instance has only the endpoint that answers.
 *
 * Attempts time out after 1 s (a setting). The webhooks module runs alone on the store, set up as in app.ts, in a process of its
 * own. The endpoint that answers has another process, and the nine others have a third, because they are different consumers. The
 * figure is the median of the rounds' p95.
 */

import { addEndpoints, type Consumer, createConsumer } from '../harness/consumers.ts'
import type { BenchDatabase } from '../harness/databases.ts'
import { alternate, figureOf } from '../harness/figure.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { quantile } from '../harness/statistics.ts'
import type { LanesProcess } from '../processes/lanes.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'

const FLOOR = { kind: 'at most', ratio: 1.2 } as const
const ATTEMPT_TIMEOUT_MS = 1_000
const EVENTS_EVERY_MS = 100
const WARM_UP = 30
const REFUSED = 'http://127.0.0.1:1/'

export const endpoints: Scenario = {
  name: 'endpoints',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const receiver = cleanUp.use(await startProcess<ReceiverProcess>('receiver.ts'))
    const url = await receiver.call('listen')
    const others = cleanUp.use(await startProcess<ReceiverProcess>('receiver.ts'))
    const othersUrl = await others.call('listen')
    const dead = [`${othersUrl}/dead`, `${othersUrl}/failing`, REFUSED]
    const alone = await prepare(bench, url, [])
    const besideNine = await prepare(bench, url, [...dead, ...dead, ...dead])
    const events = bench.quick ? 40 : 150
    const rounds = await alternate(
      bench.quick ? 2 : 5,
      () => measureOn(alone, receiver, events),
      () => measureOn(besideNine, receiver, events),
      bench.say,
    )
    return [
      figureOf({
        name: 'new event beside nine dead endpoints: p95',
        store: bench.store,
        unit: 'ms',
        against: 'alone',
        ...rounds,
        floor: FLOOR,
      }),
    ]
  },
}

interface Prepared {
  database: BenchDatabase
  consumer: Consumer
}

async function prepare(bench: Bench, url: string, others: readonly string[]): Promise<Prepared> {
  const database = await bench.createDatabase()
  const store = await database.openStore()
  const consumer = await createConsumer(store, `${url}/events`)
  await addEndpoints(store, consumer.instanceId, others)
  await store.close()
  return { database, consumer }
}

/** Restarts the lanes. @returns the p95, in milliseconds */
async function measureOn(
  { database, consumer: { instanceId } }: Prepared,
  receiver: Remote<ReceiverProcess>,
  events: number,
): Promise<number> {
  await using process = await startProcess<LanesProcess>('lanes.ts')
  await process.call('open', database.storeOptions, ATTEMPT_TIMEOUT_MS)
  const record = async (count: number) => {
    await receiver.call('expect', count)
    const begunAt = await process.call('record', instanceId, count, EVENTS_EVERY_MS)
    const arrivedAt = await receiver.call('arrivals')
    return arrivedAt.map((arrived, index) => arrived - begunAt[index]!)
  }
  await record(WARM_UP)
  const latencies = await record(events)
  await process.call('close')
  return quantile(latencies, 0.95)
}
