import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Simulator } from '@pombal/simulator'
import { inject } from 'vitest'
import { startSimulator } from '../../../../simulator/test/world.ts'
import type { InstanceClient } from '../../../api-client.ts'
import { createCertificate } from '../../../certificate.ts'
import { createDatabase, type StoreKind, type TestDatabase } from '../../../databases/database.ts'
import { noteSecret } from '../../../logs/log-capture.ts'
import { LocalProxy, type LocalProxyOptions } from '../../../proxies/local-proxy.ts'
import { Service } from '../../../service.ts'
import { until } from '../../../until.ts'

const CONTACT = '5511987654321'
export const LOGIN = { user: 'shop 1', password: 'p@ss:w/rd%41-long-enough' }

interface ProxyHarnessOptions {
  store?: StoreKind
  tls?: boolean
  env?: Record<string, string>
}

/** The service in its own process, and a simulated WhatsApp in this one, which sees who connects to it. */
export class ProxyHarness implements AsyncDisposable {
  readonly simulator: Simulator
  readonly service: Service
  readonly database: TestDatabase
  readonly #certificate = createCertificate()
  readonly #folder = mkdtempSync(join(tmpdir(), 'pombal-proxy-'))
  readonly #proxies: LocalProxy[] = []
  /** The source ports of the connections to the simulated WhatsApp. */
  readonly #callers: number[] = []
  readonly #noteCaller: (message: unknown) => void

  private constructor(simulator: Simulator, database: TestDatabase, env: Record<string, string>) {
    this.simulator = simulator
    this.database = database
    for (const text of [LOGIN.password, encodeURIComponent(LOGIN.password)]) noteSecret(text)
    const ports = [simulator.url, ...simulator.media.hosts.map(host => `https://${host}`)].map(url => new URL(url).port)
    this.#noteCaller = message => {
      const { localPort = 0, remotePort = 0 } = (message as { socket: Socket }).socket
      if (ports.includes(String(localPort))) this.#callers.push(remotePort)
    }
    subscribe('net.server.socket', this.#noteCaller)
    const NODE_EXTRA_CA_CERTS = join(this.#folder, 'proxy.pem')
    writeFileSync(NODE_EXTRA_CA_CERTS, this.#certificate.cert)
    this.service = new Service({
      env: { ...database.env, WHATSAPP_URL: simulator.url, NODE_EXTRA_CA_CERTS, ...env },
    })
  }

  static async open({ store = 'sqlite', tls = false, env = {} }: ProxyHarnessOptions = {}): Promise<ProxyHarness> {
    const simulator = await startSimulator({ tls })
    const harness = new ProxyHarness(simulator, await createDatabase(store, inject('postgresUrl')), env)
    await harness.service.start()
    return harness
  }

  async listen(options: LocalProxyOptions, port?: number): Promise<LocalProxy> {
    const proxy = await LocalProxy.listen({ certificate: this.#certificate, ...options }, port)
    this.#proxies.push(proxy)
    return proxy
  }

  async link(id: string, key = 'a'): Promise<void> {
    await this.service.admin.connect(id)
    await this.simulator.scanQr(await until('a QR code', async () => (await this.service.admin.connection(id)).qr), key)
    await this.service.admin.untilState(id, 'connected')
  }

  async sendAndRead(instance: InstanceClient, text: string): Promise<void> {
    const { id } = await instance.send(CONTACT, text)
    await until(`${text} to be read`, async () => (await instance.message(id)).status === 'read')
  }

  /** How many connections to the simulated WhatsApp were opened through this proxy, and how many not. */
  countCallers(...proxies: LocalProxy[]): { through: number; past: number } {
    const through = this.#callers.filter(port => proxies.some(proxy => proxy.ports.has(port))).length
    return { through, past: this.#callers.length - through }
  }

  forgetCallers(): void {
    this.#callers.length = 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    unsubscribe('net.server.socket', this.#noteCaller)
    await this.service.dispose()
    for (const proxy of this.#proxies) await proxy.close()
    await this.database.dispose()
    rmSync(this.#folder, { recursive: true })
  }
}
