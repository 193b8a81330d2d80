/**
 * Accepting messages: `POST /v1/messages/text` for 64 instances over 64 keep-alive connections, one request at a time
 * on each. Every 202 is committed and synced. The checks of the token and the rate limit (raised) and the log are
 * included. The load comes from a separate process.
 *
 * The reference is a bare Fastify route, in its own process under the same load. It parses the same body and answers 202
 * with a body of the same shape.
 *
 * The instances are linked to a simulated WhatsApp. For the first figure, the simulator's process is suspended after the
 * warm-up. Its sockets stay open and it answers nothing. All messages go to one recipient, in order, so every instance has
 * one message in flight, and only acceptance is measured. For the second figure, the simulator continues, and messages are
 * sent during the measurement. It has no target, because the simulator uses the same cores.
 *
 * Not measured: idempotency keys, webhooks, TLS, the network.
 */
import { alternate, type Figure, figureOf, short } from '../harness/figure.ts'
import { linkInstances, startNetwork, untilConnected } from '../harness/network.ts'
import { startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { startService } from '../harness/service.ts'
import { median } from '../harness/statistics.ts'
import { textRequest } from '../harness/text.ts'
import type { BareFastify } from '../processes/bare-fastify.ts'
import type { LoadProcess, LoadResult, TimedLoad } from '../processes/load.ts'

const INSTANCES = 64
const RECIPIENT = '5511987650001'
const FLOOR = { sqlite: 0.25, postgres: 0.2 }
/** Before the first round of both: V8 compiles hot code only after some seconds. */
const WARM_UP_MS = 8_000
/** The time until the service has adapted to the silent network. */
const SETTLE_MS = 2_000

export const accept: Scenario = {
  name: 'accept',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const network = await startNetwork(cleanUp)
    const service = cleanUp.use(await startService(await bench.createDatabase(), { WHATSAPP_URL: network.url }))
    bench.say(`linking ${INSTANCES} instances`)
    const instances = await linkInstances(service, network, INSTANCES)

    const bare = cleanUp.use(await startProcess<BareFastify>('bare-fastify.ts'))
    const load = cleanUp.use(await startProcess<LoadProcess>('load.ts'))
    const bareUrl = await bare.call('listen')

    const requests = instances.map(({ token }) => textRequest(token, RECIPIENT))
    // Five rounds of both must end before the unanswered sockets are closed after 30 s.
    const times = bench.quick ? { warmUpMs: 300, durationMs: 1_000 } : { warmUpMs: 300, durationMs: 2_000 }
    const run = (url: string, changes: Partial<TimedLoad> = {}): Promise<LoadResult> =>
      load.call('run', { url, requests, expectedStatus: 202, ...times, ...changes } satisfies TimedLoad)
    const rounds = (name: string, count: number, floor?: number) =>
      measureRounds({ bench, name, count, floor, reference: () => run(bareUrl), ours: () => run(service.url) })

    bench.say('warming up')
    const warmUpMs = bench.quick ? times.durationMs : WARM_UP_MS
    for (const url of [bareUrl, service.url]) await run(url, { durationMs: warmUpMs })
    network.fallSilent()
    await run(service.url, { durationMs: SETTLE_MS })
    bench.say('while WhatsApp is silent')
    const alone = await rounds('accepted', bench.quick ? 2 : 5, FLOOR[bench.store])

    network.goOn()
    await untilConnected(service.admin, instances)
    bench.say('while the messages go out')
    const sending = await rounds('accepted while sending', bench.quick ? 1 : 3)
    return [alone, sending]
  },
}

interface Rounds {
  bench: Bench
  name: string
  count: number
  floor: number | undefined
  reference(): Promise<LoadResult>
  ours(): Promise<LoadResult>
}

async function measureRounds({ bench, name, count, floor, reference, ours }: Rounds): Promise<Figure> {
  const results: LoadResult[] = []
  const rates = await alternate(
    count,
    async () => (await reference()).perSecond,
    async () => {
      const result = await ours()
      results.push(result)
      return result.perSecond
    },
    bench.say,
  )
  const medianMs = median(results.map(result => result.medianMs))
  const p99Ms = median(results.map(result => result.p99Ms))
  return figureOf({
    name,
    store: bench.store,
    unit: 'per second',
    against: 'bare Fastify',
    ...rates,
    ...(floor !== undefined && { floor: { kind: 'at least', ratio: floor } }),
    notes: [`answered within ${short(medianMs)} ms (median), ${short(p99Ms)} ms (p99)`],
  })
}
