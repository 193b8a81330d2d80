import { inject } from 'vitest'
import type { InstanceClient } from '../api-client.ts'
import { createDatabase, type StoreKind, type TestDatabase } from '../database.ts'
import { type Network, startNetwork } from '../network.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

const CONTACT = '5511987654321'

/** A number that a simulated phone has linked. */
export interface LinkedNumber {
  id: string
  phone: string
  instance: InstanceClient
}

/** The service in its own process with linked numbers, against a simulated WhatsApp in another one. */
export class LibraryStage implements AsyncDisposable {
  readonly network: Network
  readonly service: Service
  readonly #database: TestDatabase
  #sent = 0

  private constructor(network: Network, service: Service, database: TestDatabase) {
    this.network = network
    this.service = service
    this.#database = database
  }

  static async open(store: StoreKind, env: Record<string, string> = {}): Promise<LibraryStage> {
    const database = await createDatabase(store, inject('postgresUrl'))
    const network = await startNetwork(['--claimed-pre-keys', '500'])
    const service = await new Service({
      env: { ...database.env, WHATSAPP_URL: network.url, RATE_LIMIT_PER_MINUTE: '100000', ...env },
    }).start()
    return new LibraryStage(network, service, database)
  }

  async link(): Promise<LinkedNumber> {
    const { admin } = this.service
    const { id, token } = await admin.createInstance('whatsapp')
    await admin.connect(id)
    const qr = await until('a QR code', async () => (await admin.connection(id)).qr)
    const { phone } = await this.network.scanQr(qr)
    await admin.untilState(id, 'connected')
    return { id, phone, instance: this.service.instance(id, token) }
  }

  /** Sends a text and waits until the contact has read it. @returns how long that took */
  async sendAndRead({ instance }: LinkedNumber, { to = CONTACT, withinMs = 60_000 } = {}): Promise<number> {
    const startedAt = performance.now()
    const { id } = await instance.send(to, `text ${++this.#sent}`)
    await until(`${id} to be read`, async () => (await instance.message(id)).status === 'read', withinMs)
    return performance.now() - startedAt
  }

  /** How often the connection of the number has ended in the present run. */
  endsOf({ id }: LinkedNumber): number {
    return this.service.logLines.filter(line => line.msg === 'connection.closed' && line['instanceId'] === id).length
  }

  async kill(): Promise<void> {
    await this.service.kill('SIGKILL')
    await this.#database.expireLeases()
    await this.service.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.dispose()
    await this.network.close()
    await this.#database.dispose()
  }
}
