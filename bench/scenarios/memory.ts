/**
 * Memory per connected, idle instance: the growth of the process's resident memory when 200 instances are linked and
 * connected, divided by 200.
 *
 * The reference is bare Baileys: 200 sockets in one process, linked in the same way to the same simulated WhatsApp.
 * Memory is read when one instance is connected, because Pombal loads Baileys only then, and again some time after the
 * last one has connected. Both processes collect their garbage before each reading (both run with `--expose-gc`).
 *
 * Not measured: one-time pre-keys. The simulator reports that it has enough of them, so none are created. Bare Baileys
 * would keep 812 of them in memory for each account, about 0.2 MB. Pombal keeps them in its store.
 */
import { alternate, figureOf, short } from '../harness/figure.ts'
import { GC_ARGUMENTS, settledMb } from '../harness/memory.ts'
import { linkInstances, type SimulatedNetwork, startNetwork } from '../harness/network.ts'
import { startProcess } from '../harness/remote.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { startService } from '../harness/service.ts'
import { median } from '../harness/statistics.ts'
import type { BareBaileys } from '../processes/bare-baileys.ts'

const FLOOR = { kind: 'at most', ratio: 0.3 } as const

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
  return await measureGrowth(bare.pid, count, whole, async more => {
    for (let linked = 0; linked < more; linked += 1) {
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
  return await measureGrowth(service.pid, count, whole, async more => {
    await linkInstances(service, network, more)
  })
}

async function measureGrowth(
  pid: number,
  count: number,
  whole: number[],
  connect: (more: number) => Promise<void>,
): Promise<number> {
  // Pombal loads Baileys only now; the reference loaded it when it started.
  await connect(1)
  const before = await settledMb(pid)
  await connect(count)
  const after = await settledMb(pid)
  whole.push(after)
  return (after - before) / count
}
