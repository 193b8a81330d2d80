import { inject } from 'vitest'
import type { InstanceClient } from '../../api-client.ts'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { type Network, startNetwork } from '../../network.ts'
import { Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** A linked instance, and a client for it through each node. */
export interface Linked {
  id: string
  phone: string
  token: string
  through(node: Service): InstanceClient
}

/** Several nodes on one PostgreSQL, one simulated WhatsApp in its own process, and a receiver. */
export class NodesHarness implements AsyncDisposable {
  readonly nodes: Service[]
  readonly network: Network
  readonly receiver: Receiver
  readonly #database: TestDatabase

  private constructor(nodes: Service[], network: Network, receiver: Receiver, database: TestDatabase) {
    this.nodes = nodes
    this.network = network
    this.receiver = receiver
    this.#database = database
  }

  /** @param env further settings, for all nodes or by the index of the node */
  static async open(
    count: number,
    env: Record<string, string> | ((place: number) => Record<string, string>) = {},
  ): Promise<NodesHarness> {
    const database = await createDatabase('postgres', inject('postgresUrl'))
    const network = await startNetwork(['--claimed-pre-keys', '500'])
    const receiver = await new Receiver().listen()
    const nodes = Array.from(
      { length: count },
      (_, place) =>
        new Service({
          env: {
            ...database.env,
            WHATSAPP_URL: network.url,
            ...(typeof env === 'function' ? env(place) : env),
          },
        }),
    )
    const harness = new NodesHarness(nodes, network, receiver, database)
    try {
      await Promise.all(nodes.map(node => node.start()))
      return harness
    } catch (error) {
      await harness[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Links an instance through `node`. Its webhook is the receiver. */
  async link(node: Service): Promise<Linked> {
    const { id, token } = await node.admin.createInstance('whatsapp')
    const linked = { id, token, phone: '', through: (other: Service) => other.instance(id, token) }
    await linked.through(node).setWebhook(this.receiver.url)
    await node.admin.connect(id)
    const qr = await until('the QR code', async () => (await node.admin.connection(id)).qr)
    linked.phone = (await this.network.scanQr(qr)).phone
    await node.admin.untilState(id, 'connected')
    return linked
  }

  /** The node that runs the instance, or null. */
  async ownerOf(instanceId: string): Promise<Service | null> {
    const [row] = await this.query<{ owner: string | null }>(
      `select owner from leases where instance_id = '${instanceId}' and owner is not null`,
    )
    return this.nodes.find(node => row?.owner?.includes(`-${node.pid}-`)) ?? null
  }

  /** The number of instances of each node, in the order of `nodes`. */
  async spread(): Promise<number[]> {
    const rows = await this.query<{ owner: string }>('select owner from leases where owner is not null')
    return this.nodes.map(node => rows.filter(({ owner }) => owner.includes(`-${node.pid}-`)).length)
  }

  query<T extends object>(statement: string): Promise<T[]> {
    return queryPostgres<T>(this.#database.url ?? '', statement)
  }

  /** Waits until the receiver has this event of the message. */
  untilReported(messageId: string, kind: string, withinMs?: number): Promise<unknown> {
    return until(
      `${kind} of ${messageId}`,
      () => this.receiver.events.find(({ event, data }) => event === kind && data['id'] === messageId),
      withinMs,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map(node => node.dispose()))
    await this.receiver.close()
    await this.network.close()
    await this.#database.dispose()
  }
}
