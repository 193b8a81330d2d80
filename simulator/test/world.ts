import { createSimulator, type Simulator, type SimulatorOptions } from '@pombal/simulator'
import { onTestFinished } from 'vitest'
import { BaileysClient, type ClientState } from './baileys-client.ts'
import { until } from './wait.ts'

type ClientConfig = ConstructorParameters<typeof BaileysClient>[2]

/** Short enough for tests, and far enough apart to keep their order. */
const TIMINGS = { deliveredAfterMs: 20, readAfterMs: 60, answeredAfterMs: 30 }
/** With this many claimed keys, clients do not create 812 keys each. */
const PLENTY = 500

/** A network that closes with its test. A line that it logs fails the test unless `faults` collects it. */
export async function startSimulator(options: SimulatorOptions = {}, faults?: string[]): Promise<Simulator> {
  const logged: string[] = faults ?? []
  const simulator = await createSimulator({
    timings: TIMINGS,
    claimedPreKeys: PLENTY,
    log: line => logged.push(line),
    ...options,
  })
  onTestFinished(async () => {
    await simulator.close()
    if (!faults && logged.length > 0) throw new Error(`the simulator logged: ${logged.join('; ')}`)
  })
  return simulator
}

export function startClient(url: string, state?: ClientState, config?: ClientConfig): BaileysClient {
  const client = new BaileysClient(url, state, config)
  onTestFinished(() => client.stop())
  return client
}

/** A client that is linked to the account `key` and logged in. */
export async function link(simulator: Simulator, key: string, config?: ClientConfig): Promise<BaileysClient> {
  const client = startClient(simulator.url, undefined, config)
  const qr = await until(() => client.seen.qrs[0], 'a QR code')
  await simulator.scanQr(qr, key)
  await until(() => client.isOpen, 'the login')
  return client
}

export const jid = (number: string) => `${number}@s.whatsapp.net`

/** The statuses that receipts have given a message, in order. */
export function statuses(client: BaileysClient, id: string): string[] {
  return client.seen.receipts.filter(receipt => receipt.id === id).map(({ status, error }) => error ?? status)
}
