import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSimulator, type Simulator, type SimulatorOptions } from '@pombal/simulator'
import { pino } from 'pino'
import { inject } from 'vitest'
import { newInstanceId, newMessageId, newWhatsappId } from '../../../src/domain/ids.ts'
import { type MessageState, movesTo } from '../../../src/domain/message.ts'
import type { ConnectionRecord } from '../../../src/store/connections/connections.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import { openStore } from '../../../src/store/open-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { passKeysAsObjects } from '../../../src/whatsapp/baileys/signal/library-patches.ts'
import { silenceSignalConsole } from '../../../src/whatsapp/baileys/signal/quiet-libsignal.ts'
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
} from '../../../src/whatsapp/connection/connection.ts'
import { createDatabase, type StoreKind } from '../../databases/database.ts'
import { captureLog, noteText } from '../../logs/log-capture.ts'
import { until } from '../../until.ts'

const OWNER = 'test'
/** The client then creates no pre-keys when it is linked. */
const CLAIMED_PRE_KEYS = 500
/** The first byte of a WebSocket message in one frame (RFC 6455, 5.2). A short message has its length in the second byte. */
const FINAL_BINARY = 0x82

/** The TCP connection between the driver and the network. It can be cut, and data from WhatsApp can be held back. */
export class Line {
  readonly #server: Server
  readonly #pairs = new Set<{ client: Socket; network: Socket }>()
  #held = false
  /** Sockets that were ever opened. */
  opened = 0

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(target: URL): Promise<Line> {
    const server = createServer()
    const line = new Line(server)
    server.on('connection', client => line.#join(client, connect(Number(target.port), target.hostname)))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return line
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  get sockets(): number {
    return this.#pairs.size
  }

  cut(): void {
    for (const { client, network } of this.#pairs) {
      client.destroy()
      network.destroy()
    }
  }

  /** Holds back all data from WhatsApp, on this socket and later ones. */
  hold(): void {
    this.#held = true
    for (const { network } of this.#pairs) network.pause()
  }

  release(): void {
    this.#held = false
    for (const { network } of this.#pairs) network.resume()
  }

  /** Sends these bytes to the client as one message, as if they came from WhatsApp. */
  inject(data: Buffer): void {
    for (const { client } of this.#pairs) client.write(Buffer.concat([Buffer.of(FINAL_BINARY, data.length), data]))
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #join(client: Socket, network: Socket): void {
    const pair = { client, network }
    this.#pairs.add(pair)
    this.opened += 1
    client.on('data', data => network.write(data))
    network.on('data', data => client.write(data))
    if (this.#held) network.pause()
    const end = () => {
      this.#pairs.delete(pair)
      client.destroy()
      network.destroy()
    }
    for (const socket of [client, network]) socket.on('close', end).on('error', end)
  }
}

/** The real driver on a real store, against a simulated network on loopback. */
export class WhatsappHarness implements AsyncDisposable {
  readonly store: Store
  readonly network: Simulator
  readonly line: Line
  /** Every line that the driver logged, at every level. */
  readonly log: string[]
  readonly #dataDir: string
  readonly #disposeDatabase: () => Promise<void>
  readonly #connections = new Set<Connection>()
  readonly #putBack = silenceSignalConsole()

  private constructor(
    store: Store,
    network: Simulator,
    line: Line,
    dataDir: string,
    disposeDatabase: () => Promise<void>,
  ) {
    this.store = store
    this.network = network
    this.line = line
    this.log = []
    this.#dataDir = dataDir
    this.#disposeDatabase = disposeDatabase
    // The service does the same. It stays in effect for the other tests of the file.
    passKeysAsObjects()
  }

  /** @param kind of the store; each harness has its own */
  static async open(options: SimulatorOptions = {}, kind: StoreKind = 'sqlite'): Promise<WhatsappHarness> {
    const dataDir = mkdtempSync(join(tmpdir(), 'pombal-whatsapp-'))
    const { url, dispose } = await createDatabase(kind, inject('postgresUrl'))
    const databaseUrl = url ?? undefined
    const store = await openStore({ dataDir, databaseUrl, masterKey: randomBytes(32), ratePerMinute: 1e9 })
    const network = await createSimulator({ claimedPreKeys: CLAIMED_PRE_KEYS, ...options })
    const line = await Line.open(new URL(network.url))
    return new WhatsappHarness(store, network, line, dataDir, dispose)
  }

  /** A new instance without an owner. */
  async createInstance(): Promise<string> {
    const id = newInstanceId()
    const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
    await this.store.instances.create(
      { id, name: id, kind: 'whatsapp', tokenDigest: randomBytes(32), webhookSecret, goal: 'idle' },
      Date.now(),
    )
    return id
  }

  async lease(instanceId: string): Promise<Lease> {
    await this.store.leases.attend(OWNER)
    await this.store.leases.acquire(OWNER, 100)
    const held = await this.store.leases.renew(OWNER)
    return held.find(lease => lease.instanceId === instanceId) as Lease
  }

  /** Starts the instance's connection, as the service does. */
  async connect(instanceId: string, more: Partial<ConnectionOptions> & { scan?: boolean } = {}): Promise<Connection> {
    const { scan = true, ...options } = more
    const connection = createConnection({
      lease: await this.lease(instanceId),
      store: this.store,
      network: {
        kind: 'simulated',
        url: `ws://127.0.0.1:${this.line.port}/ws/chat`,
        ...(scan && { linkBy: (qr: string) => this.network.scanQr(qr, instanceId) }),
      },
      settings: { messageTtlMs: 86_400_000 },
      logger: pino({ level: 'trace' }, { write: (text: string) => this.#keep(text) }),
      onLeaseLost: () => undefined,
      ...options,
    })
    this.#connections.add(connection)
    connection.start()
    return connection
  }

  /** A linked, connected instance. */
  async link(more: Partial<ConnectionOptions> = {}): Promise<{ id: string; phone: string; connection: Connection }> {
    const id = await this.createInstance()
    const { phone } = await this.network.openAccount(id)
    const connection = await this.connect(id, more)
    await this.store.connections.requestConnect(id, null)
    await this.reaches(id, 'connected')
    return { id, phone, connection }
  }

  /** Waits until the instance's connection is in this state. */
  reaches(instanceId: string, state: ConnectionRecord['state']): Promise<ConnectionRecord> {
    return until(`the connection to be ${state}`, async () => {
      const record = await this.store.connections.find(instanceId)
      return record?.state === state && record
    })
  }

  /** Waits until the connection has been in this state, however briefly. @returns the reason that it recorded first */
  firstReason(instanceId: string, state: ConnectionRecord['state']): Promise<string> {
    return until(`the connection to have become ${state}`, () => {
      const changes = this.log.filter(line => line.includes('connection.changed')).map(line => JSON.parse(line))
      return changes.find(change => change.instanceId === instanceId && change.state === state)?.reason
    })
  }

  /** Accepts a text as the API does. */
  async accept(instanceId: string, to: string, text: string): Promise<{ id: string; whatsappId: string }> {
    noteText(text)
    const now = Date.now()
    const message = { id: newMessageId(now), instanceId, to, text, whatsappId: newWhatsappId() }
    const outcome = await this.store.messages.accept(message, now)
    if (outcome.kind !== 'accepted') throw new Error(`The message was not accepted: ${outcome.kind}`)
    return message
  }

  /** Waits until the message has reached this state, or a later one. */
  async becomes(instanceId: string, id: string, state: MessageState, withinMs?: number) {
    let last: MessageState | undefined
    const look = async () => {
      const message = await this.store.messages.find(instanceId, id)
      last = message?.state
      return message && hasReached(message.state, state) && message
    }
    try {
      return await until(`message ${id} to be ${state}`, look, withinMs)
    } catch (error) {
      throw new Error(`${(error as Error).message} It is ${last}.`)
    }
  }

  async eventsOf(instanceId: string, id: string): Promise<string[]> {
    return (await this.store.messages.listEvents(instanceId, id)).map(({ kind }) => kind)
  }

  /** The bodies of the `message.received` events, oldest first. */
  async received(instanceId: string): Promise<Record<string, unknown>[]> {
    const ids = await this.receivedIds(instanceId)
    const details = await Promise.all(ids.map(id => this.store.events.find(instanceId, id)))
    return details.map(event => JSON.parse(event?.body ?? '{}').data)
  }

  /** The ids of the `message.received` events, oldest first. */
  async receivedIds(instanceId: string): Promise<string[]> {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await this.store.events.list(instanceId, { limit: 200, cursor }, { kind: 'message.received' })
      ids.push(...page.data.map(({ id }) => id))
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
    return ids.reverse()
  }

  #keep(line: string): void {
    this.log.push(line)
    captureLog(line)
  }

  async stop(connection: Connection): Promise<void> {
    this.#connections.delete(connection)
    await connection.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#connections].map(connection => connection.stop()))
    await this.line.close()
    await this.network.close()
    await this.store.close()
    await this.#disposeDatabase()
    this.#putBack()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }
}

function hasReached(state: MessageState, wanted: MessageState): boolean {
  if (state === wanted) return true
  const passed = state !== 'failed' && wanted !== 'failed' && wanted !== 'queued'
  return passed && movesTo(state, wanted).length === 0
}
