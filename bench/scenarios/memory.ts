/**
 * Memory of connected, idle instances: what the resident memory of the service's process grows by when 200 instances
 * are linked and connected, for each of them.
 *
 * The reference is bare Baileys: 200 sockets in one process, linked in the same way to the same simulated WhatsApp.
 * Both processes are asked to collect their garbage before each reading (both run with `--expose-gc`); both readings are
 * taken before the first instance and after the last one has been connected for a while.
 *
 * Left out: the one-time pre-keys. The simulator says that it has enough of them, so that none are made: bare Baileys
 * would keep 812 of them in memory for each account, about 0.2 MB, which Pombal keeps in its store.
 */
import { alternate, figureOf, short } from '../harness/figure.ts'
import { GC_ARGUMENTS, settledMb } from '../harness/memory.ts'
import { linkInstances, type SimulatedNetwork, startNetwork } from '../harness/network.ts'
import { startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { startService } from '../harness/service.ts'
import { median } from '../harness/statistics.ts'
import type { BareBaileys } from '../processes/bare-baileys.ts'

const FLOOR = { kind: 'at most', ratio: 1.5 } as const

export const memory: Scenario = {
  name: 'memory',
  stores: ['sqlite'],

  async measure(bench, cleanUp) {
    const network = await startNetwork(cleanUp)
    const count = bench.quick ? 50 : 200
    const whole = { reference: [] as number[], ours: [] as number[] }
    const rounds = await alternate(
      bench.quick ? 1 : 2,
      () => measureBare(network, count, whole.reference),
      () => measureService(bench, network, count, whole.ours),
      bench.say,
    )
    return [
      figureOf({
        name: `memory per idle instance, ${count} connected`,
        store: bench.store,
        unit: 'MB',
        against: 'bare Baileys',
        ...rounds,
        floor: FLOOR,
        notes: [
          `whole process: reference ${short(median(whole.reference))} MB, ours ${short(median(whole.ours))} MB, ` +
            `ratio ${(median(whole.ours) / median(whole.reference)).toFixed(2)}`,
        ],
      }),
    ]
  },
}

async function measureBare(network: SimulatedNetwork, count: number, whole: number[]): Promise<number> {
  await using bare = await startProcess<BareBaileys>('bare-baileys.ts', GC_ARGUMENTS)
  return await measureGrowth(bare.pid, count, whole, async () => {
    for (let linked = 0; linked < count; linked += 1) {
      await network.scanQr(await bare.call('link', network.url))
      await bare.call('linked')
    }
  })
}

async function measureService(
  bench: Bench,
  network: SimulatedNetwork,
  count: number,
  whole: number[],
): Promise<number> {
  await using service = await startService(await bench.createDatabase(), { WHATSAPP_URL: network.url }, GC_ARGUMENTS)
  return await measureGrowth(service.pid, count, whole, async () => {
    await linkInstances(service, network, count)
  })
}

async function measureGrowth(
  pid: number,
  count: number,
  whole: number[],
  connect: () => Promise<void>,
): Promise<number> {
  const before = await settledMb(pid)
  await connect()
  const after = await settledMb(pid)
  whole.push(after)
  return (after - before) / count
}
