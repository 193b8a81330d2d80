import { inject } from 'vitest'
import type { InstanceClient } from './api-client.ts'
import { createDatabase, type StoreKind, type TestDatabase } from './databases/database.ts'
import { type Network, startNetwork } from './network.ts'
import { Receiver } from './receiver.ts'
import { Service } from './service.ts'
import { until } from './until.ts'

/** A trigger that fails every commit that would record an event, and no other commit. */
export const REFUSE_EVENTS: Record<StoreKind, string> = {
  sqlite: "create trigger refuse before insert on events begin select raise(abort, 'not now'); end",
  postgres: `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
    create trigger refuse before insert on events for each row execute function refuse()`,
}
export const ALLOW_EVENTS: Record<StoreKind, string> = {
  sqlite: 'drop trigger refuse',
  postgres: 'drop trigger refuse on events',
}

const CONTACT = '5511987654321'

/** A number that a simulated phone has linked. */
export interface LinkedNumber {
  id: string
  phone: string
  instance: InstanceClient
}

export interface LinkedHarnessOptions {
  env?: Record<string, string>
  /** Options of the simulator's program. By default, linking costs no pre-keys. */
  networkOptions?: readonly string[]
}

/** The service in its own process with linked numbers and a receiver of their events, against a simulated WhatsApp in another one. */
export class LinkedHarness implements AsyncDisposable {
  readonly network: Network
  readonly service: Service
  readonly receiver: Receiver
  readonly database: TestDatabase
  #sent = 0

  private constructor(network: Network, service: Service, receiver: Receiver, database: TestDatabase) {
    this.network = network
    this.service = service
    this.receiver = receiver
    this.database = database
  }

  static async open(
    store: StoreKind,
    { env = {}, networkOptions = ['--claimed-pre-keys', '500'] }: LinkedHarnessOptions = {},
  ): Promise<LinkedHarness> {
    await using ready = new AsyncDisposableStack()
    const database = await createDatabase(store, inject('postgresUrl'))
    ready.defer(() => database.dispose())
    const network = await startNetwork(networkOptions)
    ready.defer(() => network.close())
    const receiver = await new Receiver().listen()
    ready.defer(() => receiver.close())
    const service = new Service({
      env: { ...database.env, WHATSAPP_URL: network.url, ...env },
    })
    ready.defer(() => service.dispose())
    await service.start()
    ready.move()
    return new LinkedHarness(network, service, receiver, database)
  }

  async link(): Promise<LinkedNumber> {
    const { admin } = this.service
    const { id, token } = await admin.createInstance('whatsapp')
    await admin.connect(id)
    const { phone } = await this.network.scanQr(await this.showQr(id))
    await admin.untilState(id, 'connected')
    const instance = this.service.instance(id, token)
    await instance.setWebhook(this.receiver.url)
    return { id, phone, instance }
  }

  showQr(id: string): Promise<string> {
    return until('a QR code', async () => (await this.service.admin.connection(id)).qr)
  }

  /** Sends a text and waits until the contact has read it. @returns how long that took */
  async sendAndRead({ instance }: LinkedNumber, to = CONTACT): Promise<number> {
    const startedAt = performance.now()
    const { id } = await instance.send(to, `text ${++this.#sent}`)
    await until(`${id} to be read`, async () => (await instance.message(id)).status === 'read')
    return performance.now() - startedAt
  }

  /** How often the number's connection has closed in the current run. */
  endsOf({ id }: LinkedNumber): number {
    return this.service.logLines.filter(line => line.msg === 'connection.closed' && line['instanceId'] === id).length
  }

  async kill(): Promise<void> {
    await this.service.kill('SIGKILL')
    await this.database.expireLeases()
    await this.service.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.dispose()
    await this.network.close()
    await this.receiver.close()
    await this.database.dispose()
  }
}
