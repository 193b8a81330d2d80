import type { AdminClient, NewInstance } from '../../test/api-client.ts'
import { until } from '../../test/until.ts'
import type { Chat, SimulatorProcess } from '../processes/simulator.ts'
import { startProcess } from './remote.ts'
import type { RunningService } from './service.ts'

const LINKING_AT_ONCE = 4
const LINK_WITHIN_MS = 120_000

export interface SimulatedNetwork {
  url: string
  /** @returns the number of the account that was linked */
  scanQr(qr: string): Promise<string>
  countOnline(): Promise<number>
  /** How many texts of all clients the network has acknowledged so far. */
  countAcknowledged(): Promise<number>
  /**
   * Ends every client's socket at once, and observes the network for `watchMs`.
   * @returns for each client that came back, after how many ms, in order
   */
  cutAll(watchMs: number): Promise<number[]>
  /** Contacts write at fixed times. @returns when each message left the network, by WhatsApp's ID */
  write(chats: Chat[], perSecond: number, count: number): Promise<[string, number][]>
  /** A contact sends a file with random content. */
  writeFile(chat: Chat, bytes: number): Promise<void>
  /** From now on, records when texts arrive on phones. */
  observeTimes(): Promise<void>
  /** When each text arrived on a phone since `observeTimes`, once `count` have arrived. */
  inboxTimes(count: number, withinMs: number): Promise<[string, number][]>
  /** Suspends the network's process: sockets stay open, and nothing is answered any more. */
  fallSilent(): void
  goOn(): void
}

export async function startNetwork(cleanUp: AsyncDisposableStack): Promise<SimulatedNetwork> {
  const simulator = cleanUp.use(await startProcess<SimulatorProcess>('simulator.ts'))
  return {
    url: await simulator.call('listen'),
    scanQr: qr => simulator.call('scanQr', qr),
    countOnline: () => simulator.call('countOnline'),
    countAcknowledged: () => simulator.call('countAcknowledged'),
    cutAll: watchMs => simulator.call('cutAll', watchMs),
    write: (chats, perSecond, count) => simulator.call('write', chats, perSecond, count),
    writeFile: (chat, bytes) => simulator.call('writeFile', chat, bytes),
    observeTimes: () => simulator.call('observeTimes'),
    inboxTimes: (count, withinMs) => simulator.call('inboxTimes', count, withinMs),
    fallSilent: () => void process.kill(simulator.pid, 'SIGSTOP'),
    goOn: () => void process.kill(simulator.pid, 'SIGCONT'),
  }
}

/** Creates `count` instances and links each to a simulated phone. Resolves when all are connected. */
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

/** One after the other: polling all at once would be a load of its own. */
export async function untilConnected(admin: AdminClient, instances: readonly NewInstance[]): Promise<void> {
  for (const { id } of instances) await admin.untilState(id, 'connected', LINK_WITHIN_MS)
}
