/**
 * Isolation: how long it takes to post another instance's new event while a dead consumer has deliveries waiting, from
 * the moment the event is about to be recorded until its request arrives. The reference has 1,000 of them waiting,
 * what is measured against it 1,000,000.
 *
 * The dead consumer takes every request and never answers; each attempt is given up after 200 ms (a setting), so that its lane
 * is at work all the while: attempts end, are recorded, come back as retries. The webhooks room runs by itself on
 * the store, put together as in app.ts. The first thousand deliveries are recorded through the store, the rest are copies of
 * them, made by SQL.
 *
 * Left out: the rest of the service.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { type Consumer, createConsumer, recordBacklog } from '../harness/consumers.ts'
import type { BenchDatabase } from '../harness/databases.ts'
import { alternate, figureOf } from '../harness/figure.ts'
import { type Remote, startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { median, quantile } from '../harness/statistics.ts'
import type { LanesProcess } from '../processes/lanes.ts'
import type { ReceiverProcess } from '../processes/receiver.ts'

const FEW = 1_000
const FLOOR = { kind: 'at most', ratio: 1.5 } as const
const ATTEMPT_TIMEOUT_MS = 200
/** The dead lane has then taken up its work. */
const SETTLE_MS = 1_500
const EVENTS_EVERY_MS = 20

export const lanes: Scenario = {
  name: 'lanes',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const receiver = await startProcess<ReceiverProcess>('receiver.ts')
    cleanUp.defer(() => receiver.stop())
    const url = await receiver.call('listen')
    const copies = bench.quick ? 100 : 1_000
    const few = await prepare(bench, url, 1)
    const many = await prepare(bench, url, copies)

    const events = bench.quick ? 60 : 150
    const p95s = { few: [] as number[], many: [] as number[] }
    const rounds = await alternate(
      bench.quick ? 2 : 5,
      () => measureOn(few, receiver, events, p95s.few),
      () => measureOn(many, receiver, events, p95s.many),
      bench.say,
    )
    const waiting = (FEW * copies).toLocaleString('en')
    return [
      figureOf({
        name: `new event beside ${waiting} for a dead consumer`,
        store: bench.store,
        unit: 'ms',
        against: `beside ${FEW.toLocaleString('en')}`,
        ...rounds,
        floor: FLOOR,
        notes: [`95 of 100 within ${median(p95s.few).toFixed(1)} ms and ${median(p95s.many).toFixed(1)} ms`],
      }),
    ]
  },
}

interface Prepared {
  database: BenchDatabase
  alive: Consumer
}

async function prepare(bench: Bench, url: string, copies: number): Promise<Prepared> {
  const database = await bench.createDatabase()
  const store = await database.openStore()
  const dead = await createConsumer(store, `${url}/dead`)
  const alive = await createConsumer(store, `${url}/events`)
  await recordBacklog(store, [dead], FEW)
  await store.close()
  bench.say(`${(FEW * copies).toLocaleString('en')} deliveries for a dead consumer`)
  if (copies > 1) await database.execute(copyDeliveries(copies))
  await database.settle()
  return { database, alive }
}

/** Every event and delivery there is, `copies` times in all: statements that both databases take. */
function copyDeliveries(copies: number): string[] {
  const numbers = `with recursive copy(number) as (select 1 union all select number + 1 from copy where number < ${copies - 1})`
  return [
    `${numbers}
     insert into events (instance_id, id, kind, timestamp, created_at, message_id, incoming_digest, body)
     select instance_id, id || number, kind, timestamp, created_at, message_id, null, body from events cross join copy`,
    `${numbers}
     insert into deliveries (instance_id, event_id, message_id, url, readiness, blocked_by, attempts, due_at, redelivery)
     select instance_id, event_id || number, message_id, url, readiness, blocked_by, attempts, due_at, redelivery
     from deliveries cross join copy`,
  ]
}

/** Starts the lanes anew; returns the median over the new events. */
async function measureOn(
  { database, alive }: Prepared,
  receiver: Remote<ReceiverProcess>,
  events: number,
  p95s: number[],
): Promise<number> {
  const process = await startProcess<LanesProcess>('lanes.ts')
  try {
    await process.call('open', database.storeOptions, ATTEMPT_TIMEOUT_MS)
    await sleep(SETTLE_MS)
    await receiver.call('expect', events)
    const begunAt = await process.call('record', alive.instanceId, events, EVENTS_EVERY_MS)
    const arrivedAt = await receiver.call('arrivals')
    await process.call('close')
    const latencies = arrivedAt.map((arrived, index) => arrived - begunAt[index]!)
    p95s.push(quantile(latencies, 0.95))
    return median(latencies)
  } finally {
    await process.stop()
  }
}
