/**
 * The throughput of three nodes compared with one, on PostgreSQL behind a proxy that adds 20 ms to every round trip. The
 * concurrency per node is fixed, so the limit is the latency and not the two cores.
 *
 * Accepted: 16 callers at each node, each with its own instance and one request at a time. Any node may own the instance.
 * WhatsApp is silent, so only acceptance is measured.
 *
 * Delivered: 3 instances for each node, with a backlog for a consumer that answers at once. The receiver counts requests per second,
 * once every node has its share of the instances.
 *
 * Not measured: a load balancer. Both clusters of the first part run throughout; each round of the second part starts a
 * new cluster.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { until } from '../../test/until.ts'
import { createConsumer, recordBacklog } from '../harness/consumers.ts'
import type { BenchDatabase } from '../harness/databases.ts'
import { alternate, type Figure, figureOf } from '../harness/figure.ts'
import { linkInstances, startNetwork } from '../harness/network.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { type RunningService, startService } from '../harness/service.ts'
import { textRequest } from '../harness/text.ts'
import type { LoadProcess } from '../processes/load.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'
import type { SlowProxy } from '../processes/slow-proxy.ts'

const NODES = 3
const ROUND_TRIP_MS = 20
const CALLERS_PER_NODE = 16
const CONSUMERS_PER_NODE = 3
/** For each consumer: more than the measurement uses. */
const BACKLOG = 4_000
const FLOOR = { kind: 'at least', ratio: 2.4 } as const
const SETTLE_MS = 2_000
const SHARED_WITHIN_MS = 60_000
const TO = '5511987650001'

export const nodes: Scenario = {
  name: 'nodes',
  stores: ['postgres'],

  async measure(bench, cleanUp) {
    return [await measureAccepted(bench, cleanUp), await measureDelivered(bench, cleanUp)]
  },
}

/** Nodes on one database, each with its own folder. */
class Cluster implements AsyncDisposable {
  readonly database: BenchDatabase
  readonly nodes: RunningService[] = []
  readonly #folders: string[] = []
  readonly #proxy: Remote<SlowProxy>

  private constructor(database: BenchDatabase, proxy: Remote<SlowProxy>) {
    this.database = database
    this.#proxy = proxy
  }

  static async start(database: BenchDatabase, count: number, env: Record<string, string> = {}): Promise<Cluster> {
    const proxy = await startProcess<SlowProxy>('slow-proxy.ts')
    const cluster = new Cluster(database, proxy)
    const databaseUrl = await proxy.call('listen', database.storeOptions.databaseUrl!, ROUND_TRIP_MS)
    for (let index = 0; index < count; index += 1) {
      const dataDir = mkdtempSync(join(tmpdir(), 'pombal-bench-'))
      cluster.#folders.push(dataDir)
      const storeOptions = { ...database.storeOptions, databaseUrl, dataDir }
      cluster.nodes.push(await startService({ ...database, storeOptions }, env))
    }
    return cluster
  }

  /** Waits until every node runs the same number of instances. */
  async untilShared(instances: number): Promise<void> {
    const client = new pg.Client(this.database.storeOptions.databaseUrl)
    await client.connect()
    try {
      const each = instances / this.nodes.length
      await until(
        'the instances to be shared out',
        async () => {
          const { rows } = await client.query(
            'select count(*)::int as count from leases where owner is not null group by owner',
          )
          return rows.length === this.nodes.length && rows.every(({ count }) => count === each)
        },
        SHARED_WITHIN_MS,
      )
    } finally {
      await client.end()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map(node => node.stop()))
    await this.#proxy[Symbol.asyncDispose]()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }
}

async function measureAccepted(bench: Bench, cleanUp: AsyncDisposableStack): Promise<Figure> {
  const network = await startNetwork(cleanUp)
  const [one, three] = [await prepare(1), await prepare(NODES)]

  async function prepare(count: number) {
    const cluster = cleanUp.use(await Cluster.start(await bench.createDatabase(), count, { WHATSAPP_URL: network.url }))
    bench.say(`linking ${count * CALLERS_PER_NODE} instances`)
    const instances = await linkInstances(cluster.nodes[0]!, network, count * CALLERS_PER_NODE)
    await cluster.untilShared(instances.length)
    const loads = await Promise.all(cluster.nodes.map(() => startProcess<LoadProcess>('load.ts')))
    for (const load of loads) cleanUp.use(load)
    return { cluster, instances, loads }
  }

  async function run({ cluster, instances, loads }: Awaited<ReturnType<typeof prepare>>): Promise<number> {
    const times = bench.quick ? { warmUpMs: 300, durationMs: 1_000 } : { warmUpMs: 500, durationMs: 2_000 }
    const results = await Promise.all(
      cluster.nodes.map(({ url }, index) => {
        const own = instances.slice(index * CALLERS_PER_NODE, (index + 1) * CALLERS_PER_NODE)
        const requests = own.map(({ token }) => textRequest(token, TO))
        return loads[index]!.call('run', { url, requests, expectedStatus: 202, ...times })
      }),
    )
    return results.reduce((sum, { perSecond }) => sum + perSecond, 0)
  }

  // Rounds must end before the unanswered sockets are closed after 30 s.
  network.fallSilent()
  await sleep(SETTLE_MS)
  const rounds = await alternate(
    bench.quick ? 1 : 4,
    () => run(one),
    () => run(three),
    bench.say,
  )
  network.goOn()
  return figureOf({
    name: `accepted by ${NODES} nodes, ${ROUND_TRIP_MS} ms from the database`,
    store: bench.store,
    unit: 'per second',
    against: 'one node',
    ...rounds,
    floor: FLOOR,
    notes: [`${CALLERS_PER_NODE} callers at each node`],
  })
}

async function measureDelivered(bench: Bench, cleanUp: AsyncDisposableStack): Promise<Figure> {
  const receiver = cleanUp.use(await startProcess<ReceiverProcess>('receiver.ts'))
  const url = `${await receiver.call('listen')}/events`
  const windowMs = bench.quick ? 2_000 : 6_000

  async function run(count: number): Promise<number> {
    const database = await bench.createDatabase()
    const store = await database.openStore()
    const consumers = []
    for (let index = 0; index < count * CONSUMERS_PER_NODE; index += 1) consumers.push(await createConsumer(store, url))
    await recordBacklog(store, consumers, BACKLOG)
    await store.close()
    await receiver.call('expect', consumers.length * BACKLOG)
    await using cluster = await Cluster.start(database, count)
    await cluster.untilShared(consumers.length)
    await sleep(SETTLE_MS)
    const before = await receiver.call('count')
    const startedAt = performance.now()
    await sleep(windowMs)
    const rate = ((await receiver.call('count')) - before) / ((performance.now() - startedAt) / 1_000)
    if ((await receiver.call('count')) >= consumers.length * BACKLOG) throw new Error('The backlog was too short.')
    return rate
  }

  const rounds = await alternate(
    bench.quick ? 1 : 3,
    () => run(1),
    () => run(NODES),
    bench.say,
  )
  return figureOf({
    name: `delivered by ${NODES} nodes, ${ROUND_TRIP_MS} ms from the database`,
    store: bench.store,
    unit: 'per second',
    against: 'one node',
    ...rounds,
    floor: FLOOR,
    notes: [`${CONSUMERS_PER_NODE} instances with a backlog for each node`],
  })
}
