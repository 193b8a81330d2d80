/**
 * Isolation: the delay of another instance's new event while deliveries for a dead consumer are pending, from just before
 * the event is recorded until its request arrives. The dead consumer has 1,000,000 pending deliveries; in the reference, 1,000.
 *
 * The dead consumer accepts every request and never answers. Attempts time out after 200 ms (a setting), which keeps its
 * lane busy: attempts end, are recorded, and are retried. The webhooks module runs alone on the store, set up as in app.ts.
 * The first 1,000 deliveries are recorded through the store, and the others are copies made by SQL.
 *
 * Then the same with 1,000 dead consumers and the default timeout of 10 s. They occupy all requests that slow
 * consumers may have open. When the first event after the start arrives, no consumer is known to be fast or slow yet.
 *
 * The last two figures measure the whole service: the memory of a node with the 1,000,000 pending deliveries, and how
 * much longer it takes to start, compared with an empty one.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { type Consumer, createConsumer, recordBacklog } from '../harness/consumers.ts'
import type { BenchDatabase } from '../harness/databases.ts'
import { alternate, type Figure, figureOf, plainFigure } from '../harness/figure.ts'
import { GC_ARGUMENTS, settledMb } from '../harness/memory.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { startService } from '../harness/service.ts'
import { median, quantile } from '../harness/statistics.ts'
import type { LanesProcess } from '../processes/lanes.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'

const FEW = 1_000
const FLOOR = { kind: 'at most', ratio: 1.5 } as const
const ATTEMPT_TIMEOUT_MS = 200
/** The time until the lane of the dead consumer is busy. */
const SETTLE_MS = 1_500
const EVENTS_EVERY_MS = 20
const MANY_DEAD = 1_000
const WAITING_FOR_EACH = 20
/** The default of the service. */
const DEFAULT_TIMEOUT_MS = 10_000
const MEMORY_FLOOR = { kind: 'at most', ratio: 1.3 } as const
const LONGER_START_S = 2

export const lanes: Scenario = {
  name: 'lanes',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const receiver = cleanUp.use(await startProcess<ReceiverProcess>('receiver.ts'))
    const url = await receiver.call('listen')
    const copies = bench.quick ? 100 : 1_000
    const few = await prepare(bench, url, 1)
    const many = await prepare(bench, url, copies)

    const events = bench.quick ? 60 : 150
    const p95s = { few: [] as number[], many: [] as number[] }
    const rounds = await alternate(
      bench.quick ? 2 : 5,
      () => measureOn(few, receiver, events, ATTEMPT_TIMEOUT_MS, p95s.few),
      () => measureOn(many, receiver, events, ATTEMPT_TIMEOUT_MS, p95s.many),
      bench.say,
    )
    const waiting = (FEW * copies).toLocaleString('en')
    return [
      figureOf({
        name: `new event while ${waiting} wait for a dead consumer`,
        store: bench.store,
        unit: 'ms',
        against: `while ${FEW.toLocaleString('en')} wait`,
        ...rounds,
        floor: FLOOR,
        notes: [`95 of 100 within ${median(p95s.few).toFixed(1)} ms and ${median(p95s.many).toFixed(1)} ms`],
      }),
      await measureManyDead(bench, receiver, url, events),
      ...(await measureNode(bench, many, waiting)),
    ]
  },
}

async function measureManyDead(
  bench: Bench,
  receiver: Remote<ReceiverProcess>,
  url: string,
  events: number,
): Promise<Figure> {
  const one = await prepare(bench, url, 1)
  const many = await prepare(bench, url, 1, MANY_DEAD, WAITING_FOR_EACH)
  const firstMs: number[] = []
  const rounds = await alternate(
    bench.quick ? 1 : 3,
    () => measureOn(one, receiver, events, DEFAULT_TIMEOUT_MS, []),
    () => measureOn(many, receiver, events, DEFAULT_TIMEOUT_MS, [], firstMs),
    bench.say,
  )
  return figureOf({
    name: `new event with ${MANY_DEAD.toLocaleString('en')} dead consumers`,
    store: bench.store,
    unit: 'ms',
    against: 'with one',
    ...rounds,
    floor: FLOOR,
    notes: [`the first one after a start, when nobody has answered yet: ${(median(firstMs) / 1_000).toFixed(1)} s`],
  })
}

/** The whole service, on the database with the backlog and on an empty one. */
async function measureNode(bench: Bench, { database }: Prepared, waiting: string): Promise<Figure[]> {
  const empty = await bench.createDatabase()
  const starts = { empty: [] as number[], full: [] as number[] }
  const weights = await alternate(
    bench.quick ? 1 : 3,
    () => weigh(empty, starts.empty),
    () => weigh(database, starts.full),
    bench.say,
  )
  const [emptyS, fullS] = [median(starts.empty) / 1_000, median(starts.full) / 1_000]
  return [
    figureOf({
      name: `memory of a node with ${waiting} waiting`,
      store: bench.store,
      unit: 'MB',
      against: 'an idle one',
      ...weights,
      floor: MEMORY_FLOOR,
    }),
    plainFigure({
      name: `extra start-up time with ${waiting} waiting`,
      store: bench.store,
      unit: 's',
      value: Math.max(0, fullS - emptyS),
      atMost: LONGER_START_S,
      notes: [`${emptyS.toFixed(1)} s and ${fullS.toFixed(1)} s`],
    }),
  ]
}

async function weigh(database: BenchDatabase, starts: number[]): Promise<number> {
  const startedAt = performance.now()
  await using service = await startService(database, {}, GC_ARGUMENTS)
  starts.push(performance.now() - startedAt)
  return await settledMb(service.pid)
}

interface Prepared {
  database: BenchDatabase
  alive: Consumer
}

async function prepare(bench: Bench, url: string, copies: number, consumers = 1, each = FEW): Promise<Prepared> {
  const database = await bench.createDatabase()
  const store = await database.openStore()
  const dead: Consumer[] = []
  for (let index = 0; index < consumers; index += 1) dead.push(await createConsumer(store, `${url}/dead`))
  const alive = await createConsumer(store, `${url}/events`)
  await recordBacklog(store, dead, each)
  await store.close()
  bench.say(`${(consumers * each * copies).toLocaleString('en')} deliveries for ${consumers} dead consumers`)
  if (copies > 1) await database.execute(copyDeliveries(copies))
  await database.settle()
  return { database, alive }
}

/** Multiplies every event and delivery by `copies`, in SQL for both databases. */
function copyDeliveries(copies: number): string[] {
  const numbers = `with recursive copy(number) as (select 1 union all select number + 1 from copy where number < ${copies - 1})`
  return [
    `${numbers}
     insert into events (instance_id, id, kind, timestamp, created_at, message_id, incoming_digest, seq, body)
     select instance_id, id || number, kind, timestamp, created_at, message_id, null, seq + number * 1000000000, body
     from events cross join copy`,
    `${numbers}
     insert into deliveries (instance_id, event_id, message_id, url, readiness, blocked_by, attempts, due_at, redelivery)
     select instance_id, event_id || number, message_id, url, readiness, blocked_by, attempts, due_at, redelivery
     from deliveries cross join copy`,
  ]
}

async function postFirst(
  process: Remote<LanesProcess>,
  alive: Consumer,
  receiver: Remote<ReceiverProcess>,
): Promise<number> {
  await receiver.call('expect', 1)
  const [begunAt] = await process.call('record', alive.instanceId, 1, 0)
  const [arrivedAt] = await receiver.call('arrivals')
  return arrivedAt! - begunAt!
}

/** Restarts the lanes. @returns the median latency of the new events */
async function measureOn(
  { database, alive }: Prepared,
  receiver: Remote<ReceiverProcess>,
  events: number,
  timeoutMs: number,
  p95s: number[],
  firstMs: number[] = [],
): Promise<number> {
  await using process = await startProcess<LanesProcess>('lanes.ts')
  await process.call('open', database.storeOptions, timeoutMs)
  await sleep(SETTLE_MS)
  firstMs.push(await postFirst(process, alive, receiver))
  await receiver.call('expect', events)
  const begunAt = await process.call('record', alive.instanceId, events, EVENTS_EVERY_MS)
  const arrivedAt = await receiver.call('arrivals')
  await process.call('close')
  const latencies = arrivedAt.map((arrived, index) => arrived - begunAt[index]!)
  p95s.push(quantile(latencies, 0.95))
  return median(latencies)
}
