/**
 * 2,000 connected instances on one node (`--instances` sets another number):
 *
 * - Resident memory per instance: how much the process grows while all but the first are linked, after garbage
 *   collection.
 * - Processor time per instance in an idle minute: keep-alives, leases, polls.
 * - The time from the start of the program until all are logged in again, after a SIGTERM.
 * - The 99th percentile of the latency of API calls, from the moment the program listens until all are logged in. Every
 *   20 ms a call posts a text or reads an instance, in turn, without waiting for earlier calls. The reference is the
 *   node at rest.
 *
 * The reference for memory and processor time is bare Baileys with its keys in memory: at most 200 sockets in one process,
 * linked in the same way to the same simulated WhatsApp. A restart has no reference.
 *
 * Not measured, as in `memory`: one-time pre-keys.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/until.ts'
import { type Figure, figureOf, plainFigure, short } from '../harness/figure.ts'
import { GC_ARGUMENTS, settledMb } from '../harness/memory.ts'
import { linkInstances, type SimulatedNetwork, startNetwork, untilConnected } from '../harness/network.ts'
import { startProcess } from '../harness/remote.ts'
import type { Scenario } from '../harness/scenario.ts'
import { processorMs, startService } from '../harness/service.ts'
import type { BareBaileys } from '../processes/bare-baileys.ts'
import type { ProbeResult, ProberProcess } from '../processes/prober.ts'

const INSTANCES = 2_000
const QUICK_INSTANCES = 50
const MAX_BARE_SOCKETS = 200
const MINUTE_MS = 60_000
const CALL_EVERY_MS = 20
/** This number confirms delivery and never reads: the second receipt is not part of the measurement. */
const TO = '15005550002'
const BACK_WITHIN_MS = 300_000
const REST_MS = 10_000

export const fleet: Scenario = {
  name: 'fleet',
  stores: ['sqlite', 'postgres'],
  onlyIfNamed: true,

  async measure(bench, cleanUp) {
    const { store, say } = bench
    const count = bench.instances ?? (bench.quick ? QUICK_INSTANCES : INSTANCES)
    const minuteMs = bench.quick ? MINUTE_MS / 6 : MINUTE_MS
    const network = await startNetwork(cleanUp)
    const bare = await measureBare(network, Math.min(count, MAX_BARE_SOCKETS), minuteMs)
    say(`bare Baileys: ${short(bare.memoryMb)} MB and ${short(bare.processorMs)} ms each`)

    const prober = cleanUp.use(await startProcess<ProberProcess>('prober.ts'))
    const database = await bench.createDatabase()
    const start = () => startService(database, { WHATSAPP_URL: network.url }, GC_ARGUMENTS)
    const first = cleanUp.use(await start())
    // Baileys is loaded with the first instance.
    const instances = await linkInstances(first, network, 1)
    const emptyMb = await settledMb(first.pid)
    instances.push(...(await linkInstances(first, network, count - 1)))
    const fullMb = await settledMb(first.pid)
    say(`${count} instances are connected`)
    const usedMs = await processorMsOf(first.pid, minuteMs)

    async function measureCalls(url: string, meanwhile: () => Promise<unknown>): Promise<ProbeResult> {
      await prober.call('begin', { url, tokens: instances.map(({ token }) => token), to: TO, everyMs: CALL_EVERY_MS })
      await meanwhile()
      return prober.call('end')
    }

    const calm = await measureCalls(first.url, () => sleep(REST_MS))
    await first.stop()
    const startedAt = performance.now()
    const second = cleanUp.use(await start())
    const listensAfterMs = performance.now() - startedAt
    const allOnline = async () => (await network.countOnline()) === count
    const calls = await measureCalls(second.url, () => until('all to be logged in', allOnline, BACK_WITHIN_MS))
    const backAfterMs = performance.now() - startedAt
    await untilConnected(second.admin, instances)

    const against = (what: string, reference: number, ours: number) => {
      return { store, against: what, reference: [reference], ours: [ours] }
    }
    return [
      figureOf({
        ...against('bare Baileys', bare.memoryMb, (fullMb - emptyMb) / (count - 1)),
        name: `memory per idle instance, ${count} connected`,
        unit: 'MB',
        notes: [`whole process: ${short(emptyMb)} MB with one, ${short(fullMb)} MB with all`],
      }),
      figureOf({
        ...against('bare Baileys', bare.processorMs, usedMs / count),
        name: `processor time of an idle minute, each of ${count}`,
        unit: 'ms',
        notes: [`whole process: ${short(usedMs / 1_000)} s`],
      }),
      plainFigure({
        store,
        name: `from a start until all ${count} are logged in`,
        unit: 's',
        value: backAfterMs / 1_000,
        notes: [`the API answers after ${short(listensAfterMs / 1_000)} s`],
      }),
      figureOf({
        ...against('at rest', calm.p99Ms, calls.p99Ms),
        name: 'p99 of the API until all are logged in',
        unit: 'ms',
        notes: [textOf('until then', calls), textOf('at rest', calm)],
      }),
    ] satisfies Figure[]
  },
}

/** Memory of bare Baileys and its processor time in a minute, per socket. */
async function measureBare(network: SimulatedNetwork, count: number, minuteMs: number) {
  await using bare = await startProcess<BareBaileys>('bare-baileys.ts', GC_ARGUMENTS)
  const before = await settledMb(bare.pid)
  for (let linked = 0; linked < count; linked += 1) {
    await network.scanQr(await bare.call('link', network.url))
    await bare.call('linked')
  }
  const memoryMb = ((await settledMb(bare.pid)) - before) / count
  return { memoryMb, processorMs: (await processorMsOf(bare.pid, minuteMs)) / count }
}

/** Processor time per minute, measured over `observedMs`. */
async function processorMsOf(pid: number, observedMs: number): Promise<number> {
  const before = processorMs(pid)
  await sleep(observedMs)
  return ((processorMs(pid) - before) * MINUTE_MS) / observedMs
}

function textOf(when: string, { calls, failed, medianMs, p95Ms, longestMs }: ProbeResult): string {
  return (
    `${when}: ${calls} calls, ${failed} failed; median ${short(medianMs)}, p95 ${short(p95Ms)}, ` +
    `longest ${short(longestMs)} ms`
  )
}
