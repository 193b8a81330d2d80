import type { AdminClient, NewInstance } from '../../test/api-client.ts'
import { until } from '../../test/until.ts'
import type { SimulatorProcess } from '../processes/simulator.ts'
import { startProcess } from './remote.ts'
import type { RunningService } from './service.ts'

const LINKING_AT_ONCE = 4
const LINK_WITHIN_MS = 120_000

/** A simulated WhatsApp in a process of its own. */
export interface SimulatedNetwork {
  url: string
  scanQr(qr: string): Promise<void>
  /** Clients that are logged in. */
  countOnline(): Promise<number>
  /**
   * Ends every client's socket at once, and watches for so long.
   * @returns how many ms later each that came back was there, in order
   */
  cutAll(watchMs: number): Promise<number[]>
  /** Stops its process in its tracks: sockets stay open, and nothing is answered any more. */
  fallSilent(): void
  goOn(): void
}

export async function startNetwork(cleanUp: AsyncDisposableStack): Promise<SimulatedNetwork> {
  const simulator = cleanUp.use(await startProcess<SimulatorProcess>('simulator.ts'))
  return {
    url: await simulator.call('listen'),
    scanQr: qr => simulator.call('scanQr', qr),
    countOnline: () => simulator.call('countOnline'),
    cutAll: watchMs => simulator.call('cutAll', watchMs),
    fallSilent: () => void process.kill(simulator.pid, 'SIGSTOP'),
    goOn: () => void process.kill(simulator.pid, 'SIGCONT'),
  }
}

/** Makes `count` instances and links each to a simulated phone; resolves when all are connected. */
export async function linkInstances(
  { admin }: RunningService,
  network: SimulatedNetwork,
  count: number,
): Promise<NewInstance[]> {
  const instances: NewInstance[] = []
  let left = count

  async function linkSome(): Promise<void> {
    while (left-- > 0) {
      const instance = await admin.createInstance('whatsapp', 'bench')
      await admin.connect(instance.id)
      const qr = await until('a QR code', async () => (await admin.connection(instance.id)).qr, LINK_WITHIN_MS)
      await network.scanQr(qr)
      instances.push(instance)
    }
  }

  await Promise.all(Array.from({ length: LINKING_AT_ONCE }, linkSome))
  await untilConnected(admin, instances)
  return instances
}

/** One after the other: to ask for all at once, again and again, would be a load of its own. */
export async function untilConnected(admin: AdminClient, instances: readonly NewInstance[]): Promise<void> {
  for (const { id } of instances) await admin.untilState(id, 'connected', LINK_WITHIN_MS)
}
