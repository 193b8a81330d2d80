/**
 * 500 connected, idle instances on one node: their cost, and what happens when all of them reconnect at once.
 *
 * - Resident memory per instance: the growth of the process when they are linked, after garbage collection.
 * - Processor time of a minute without messages: keep-alives, leases, polls.
 * - The time from the start of the program until all of them are logged in again, after a SIGTERM.
 * - WhatsApp ends all sockets at once: the time until the instances are back, and the highest number that return within any
 *   100 ms.
 * - The 95th percentile of the latency of API calls, from the moment the sockets end until shortly after all instances are back. Every 20 ms a
 *   call posts a text or reads an instance, in turn, without waiting for earlier calls.
 *
 * There is no reference, because no simpler program gives these guarantees. Not measured, as in `memory`: one-time pre-keys.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/until.ts'
import { type Figure, plainFigure, short } from '../harness/figure.ts'
import { GC_ARGUMENTS, settledMb } from '../harness/memory.ts'
import { linkInstances, type SimulatedNetwork, startNetwork, untilConnected } from '../harness/network.ts'
import { startProcess } from '../harness/remote.ts'
import type { Scenario } from '../harness/scenario.ts'
import { processorMs, startService } from '../harness/service.ts'
import type { ProbeResult, ProberProcess } from '../processes/prober.ts'

const MINUTE_MS = 60_000
const P95_LIMIT_MS = 100
const CALL_EVERY_MS = 20
/** This number confirms delivery and never reads: the second receipt is not part of the measurement. */
const TO = '15005550002'
const BACK_WITHIN_MS = 120_000
/** The time until the messages that waited for their instance are sent. */
const AFTERMATH_MS = 3_000
const WINDOW_MS = 100

export const idle: Scenario = {
  name: 'idle',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const { store, quick, say } = bench
    const count = quick ? 50 : 500
    const restMs = quick ? MINUTE_MS / 6 : MINUTE_MS
    const network = await startNetwork(cleanUp)
    const prober = cleanUp.use(await startProcess<ProberProcess>('prober.ts'))
    const database = await bench.createDatabase()
    const start = () => startService(database, { WHATSAPP_URL: network.url }, GC_ARGUMENTS)

    const first = cleanUp.use(await start())
    const emptyMb = await settledMb(first.pid)
    const instances = await linkInstances(first, network, count)
    const fullMb = await settledMb(first.pid)
    say(`${count} instances are connected`)

    const usedBeforeMs = processorMs(first.pid)
    await sleep(restMs)
    const usedMs = ((processorMs(first.pid) - usedBeforeMs) * MINUTE_MS) / restMs
    await first.stop()

    const startedAt = performance.now()
    const second = cleanUp.use(await start())
    const listensAfterMs = performance.now() - startedAt
    await until('all to be logged in', async () => (await network.countOnline()) === count, BACK_WITHIN_MS)
    const loggedInAfterMs = performance.now() - startedAt
    await untilConnected(second.admin, instances)
    say(`all are back ${short(loggedInAfterMs)} ms after a restart`)

    await sleep(restMs / 10)
    const probe = { url: second.url, tokens: instances.map(({ token }) => token), to: TO, everyMs: CALL_EVERY_MS }
    const calm = await measureCalls(probe, () => sleep(AFTERMATH_MS))
    let backAfterMs: number[] = []
    const calls = await measureCalls(probe, async () => {
      backAfterMs = await cutAll(network, count)
      await sleep(AFTERMATH_MS)
    })
    say(`all are back ${short(backAfterMs.at(-1)!)} ms after their sockets ended`)

    async function measureCalls(asked: typeof probe, meanwhile: () => Promise<unknown>): Promise<ProbeResult> {
      await prober.call('begin', asked)
      await meanwhile()
      return prober.call('end')
    }

    const figure = (plain: Omit<Parameters<typeof plainFigure>[0], 'store'>): Figure => plainFigure({ ...plain, store })
    return [
      figure({
        name: `memory per idle instance, ${count} connected`,
        unit: 'MB',
        value: (fullMb - emptyMb) / count,
        notes: [`whole process: ${short(emptyMb)} MB before the first, ${short(fullMb)} MB`],
      }),
      figure({ name: `processor time of a minute, ${count} idle`, unit: 's', value: usedMs / 1_000 }),
      figure({
        name: `from a start until all ${count} are logged in`,
        unit: 's',
        value: loggedInAfterMs / 1_000,
        notes: [`the API answers after ${short(listensAfterMs / 1_000)} s`],
      }),
      figure({
        name: `all ${count} cut off: p95 of the API until they are back`,
        unit: 'ms',
        value: calls.p95Ms,
        atMost: P95_LIMIT_MS,
        notes: [
          `back after ${short(backAfterMs[0]! / 1_000)} s to ${short(backAfterMs.at(-1)! / 1_000)} s, ` +
            `${mostWithin(backAfterMs, WINDOW_MS)} of them in the busiest ${WINDOW_MS} ms`,
          `${calls.calls} calls, ${calls.failed} failed; median ${short(calls.medianMs)}, p99 ${short(calls.p99Ms)}, ` +
            `longest ${short(calls.longestMs)} ms; p95 at rest ${short(calm.p95Ms)} ms`,
        ],
      }),
    ]
  },
}

/** @throws Error if not all come back */
async function cutAll(network: SimulatedNetwork, count: number): Promise<number[]> {
  const backAfterMs = await network.cutAll(BACK_WITHIN_MS)
  if (backAfterMs.length < count) throw new Error(`Only ${backAfterMs.length} of ${count} instances came back.`)
  return backAfterMs
}

/** The highest number of these sorted times within one window. */
function mostWithin(moments: readonly number[], windowMs: number): number {
  let most = 0
  let first = 0
  moments.forEach((moment, index) => {
    while (moment - moments[first]! >= windowMs) first += 1
    most = Math.max(most, index - first + 1)
  })
  return most
}
