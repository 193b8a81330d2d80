import { type AdminClient, adminClient, instanceClient } from '../api-client.ts'
import type { TestDatabase } from '../databases/database.ts'
import { RECOVERS_WITHIN_MS } from '../deadlines.ts'
import { type Network, startNetwork } from '../network.ts'
import { Service, ServiceDown, type ServiceOptions } from '../service.ts'
import { until } from '../until.ts'
import { collectFacts, type LinkedInstance } from './collect-facts.ts'
import type { Facts } from './facts.ts'
import { forEachConcurrently } from './for-each-concurrently.ts'
import { expectedKinds } from './judge.ts'
import { BUSY, Load, type LoadOptions } from './load.ts'
import { type NetworkFaultCounts, NetworkFaults } from './network-faults.ts'
import { Notifier } from './notifier.ts'
import { Random } from './random.ts'
import { Recorder } from './recorder.ts'

/** Much longer than a lease: if nothing arrives for this long, nothing more will. */
const SILENCE_MS = 120_000
/** Long enough to receive an attempt that should not happen. */
const AFTERMATH_MS = 1_000
/** With several nodes: how long a caller waits for a node before it calls the next one. */
const CALL_TIMEOUT_MS = 4_000
const COUNT_PENDING_EVERY_MS = 500
const LINKED_AT_ONCE = 4
/** After these causes of `unlinked`, linking has to be requested again. */
const INTERRUPTED: ReadonlySet<string | null> = new Set(['linking_interrupted', 'code_expired'])

export interface LoadHarnessOptions {
  database: TestDatabase
  instances: number
  /** Uses sandbox instances, whose network is inside the service and is killed with it. */
  sandbox?: boolean
  seed: number
  /** Default: as fast as the instances accept. */
  load?: Pick<LoadOptions, 'pace' | 'retriedCodes'>
  /** Whether WhatsApp misbehaves: see `NetworkFaults`. */
  networkFaults?: boolean
  /** Options for Node itself, in the service's processes. */
  nodeOptions?: readonly string[]
  /** More options of the simulator's program. */
  networkOptions?: readonly string[]
  /** The options of each node. Default: one node without any. */
  nodes?: readonly NodeOptions[]
}

export type NodeOptions = Pick<ServiceOptions, 'env' | 'nodeOptions' | 'program'>

export type { LinkedInstance }

/**
 * Runs the service on a new store, with a simulated WhatsApp in another process, a receiver, and callers that repeat each call
 * until its 202. The creator disposes of it.
 */
export class LoadHarness {
  readonly recorder: Recorder
  /** All nodes, running or not. */
  readonly nodes: Service[]
  readonly network: Network | null
  readonly #options: LoadHarnessOptions
  readonly #random: Random
  readonly #onAccepted = new Notifier()
  readonly #onArrival = new Notifier()
  readonly linkedInstances: LinkedInstance[] = []
  #networkFaults: NetworkFaults | null = null
  /** How often each network fault occurred. Null until the load has ended. */
  networkFaultCounts: NetworkFaultCounts | null = null
  /** Boots of replaced nodes, and other incidents that may repeat an attempt. */
  #incidents = 0
  #calls = 0
  #lastPendingEvents = 0
  #pendingEventsCountedAt = Number.NEGATIVE_INFINITY
  /** The mean duration of the first start of a node. */
  startUpMs = 0

  private constructor(options: LoadHarnessOptions, network: Network | null) {
    this.#options = options
    this.#random = new Random(options.seed)
    this.network = network
    this.nodes = (options.nodes ?? [{}]).map(node => this.#createNode(node))
    this.recorder = new Recorder({
      boot: () => this.nodes.reduce((sum, { boots }) => sum + boots, this.#incidents),
      random: this.#random.fork(),
      onArrival: () => this.#onArrival.notify(),
    })
  }

  /** Links and connects every instance and sets its webhook. */
  static async open(options: LoadHarnessOptions): Promise<LoadHarness> {
    const harness = new LoadHarness(options, options.sandbox ? null : await startNetwork(options.networkOptions))
    try {
      await harness.recorder.listen()
      const startedAt = performance.now()
      for (const node of harness.nodes) await node.start()
      harness.startUpMs = (performance.now() - startedAt) / harness.nodes.length
      const numbers = Array.from({ length: options.instances }, (_, n) => n)
      await forEachConcurrently(numbers, LINKED_AT_ONCE, () => harness.#addInstance())
      if (options.networkFaults && harness.network)
        harness.#networkFaults = await NetworkFaults.begin(harness.network, harness.random)
      return harness
    } catch (error) {
      await harness.dispose()
      throw error
    }
  }

  /** The first node. */
  get service(): Service {
    return this.nodes[0]!
  }

  /** Calls the running nodes in turn. */
  get admin(): AdminClient {
    return adminClient(() => this.#nextUrl(), this.service.adminKey)
  }

  get database(): TestDatabase {
    return this.#options.database
  }

  /** From now on, repeated attempts are attributed to an incident at this moment. */
  noteIncident(): void {
    this.#incidents += 1
  }

  /** Replaces a node that has ended with a new one, which is not started yet. */
  async replaceNode(index: number, options: NodeOptions): Promise<Service> {
    const before = this.nodes[index]!
    this.#incidents += before.boots
    await before.dispose()
    const node = this.#createNode(options)
    this.nodes[index] = node
    return node
  }

  #createNode({ env, ...options }: NodeOptions): Service {
    const network = this.network
    return new Service({
      nodeOptions: this.#options.nodeOptions ?? [],
      ...options,
      env: {
        ...(network ? { WHATSAPP_URL: network.url, SANDBOX: 'off' } : {}),
        ...this.#options.database.env,
        ...env,
      },
    })
  }

  /** The next node in turn, like a load balancer that has not noticed yet that a node hangs. */
  #nextUrl(): string {
    const urls = this.nodes.map(({ url }) => url).filter(url => url !== null)
    this.#calls += 1
    const url = urls[this.#calls % urls.length]
    if (url === undefined) throw new ServiceDown()
    return url
  }

  /** A random sequence for the code that controls the run. */
  get random(): Random {
    return this.#random.fork()
  }

  startLoad(): void {
    for (const linkedInstance of this.linkedInstances) {
      linkedInstance.load = new Load({
        instance: linkedInstance.client,
        phone: linkedInstance.phone,
        network: this.network,
        random: this.#random.fork(),
        networkFaults: this.#networkFaults,
        ...this.#options.load,
        isBehind: () => this.#isBehind(),
        onAccepted: () => this.#onAccepted.notify(),
      })
    }
  }

  /** Resolves once every text has its 202. Then ends the network faults, and cuts each connection so that WhatsApp redelivers. */
  async stopLoad(): Promise<void> {
    await Promise.all(this.loads.map(load => load.stop()))
    if (this.#networkFaults === null || this.network === null) return
    this.networkFaultCounts = await this.#networkFaults.end()
    for (const { phone, load } of this.linkedInstances) {
      await this.network.misbehave({ kind: 'cut', account: phone })
      await load?.writeLast(this.network, this.random)
    }
  }

  nextAccepted(withinMs: number): Promise<void> {
    return this.#onAccepted.next(withinMs)
  }

  nextArrival(withinMs: number): Promise<void> {
    return this.#onArrival.next(withinMs)
  }

  /**
   * Waits until every instance has reported a message that was accepted after this call. @returns the duration in milliseconds
   * @throws after `RECOVERS_WITHIN_MS`
   */
  async untilRecovered(): Promise<number> {
    const startedAt = performance.now()
    const counts = this.loads.map(load => load.accepted.length)
    const hasReported = (load: Load, index: number) => {
      if (load.failure !== null) throw load.failure
      return load.accepted.slice(counts[index]).some(({ messageId }) => this.recorder.hasReported(messageId))
    }
    await until('every instance to work again', () => this.loads.every(hasReported), RECOVERS_WITHIN_MS)
    return performance.now() - startedAt
  }

  /** Waits until every instance is logged in to WhatsApp. */
  async untilConnected(): Promise<void> {
    const { network } = this
    if (network === null) return
    const phones = this.linkedInstances.map(({ phone }) => phone)
    const look = async () => {
      const accounts = await network.accounts()
      return phones.every(phone => accounts.some(account => account.phone === phone && account.online))
    }
    await until('every instance to log in', look, RECOVERS_WITHIN_MS)
  }

  /** WhatsApp answers nothing until `resumeWhatsapp`. */
  pauseWhatsapp(): void {
    this.network?.pause()
  }

  resumeWhatsapp(): void {
    this.network?.resume()
  }

  /** Resolves once every expected event has arrived, or no event has arrived for a long time. */
  async untilQuiet(): Promise<void> {
    let arrived = 0
    let since = performance.now()
    await until(
      'silence',
      () => {
        const { length } = this.recorder.arrivals
        if (length > arrived) since = performance.now()
        arrived = length
        const quietMs = performance.now() - since
        return quietMs > SILENCE_MS || (quietMs > AFTERMATH_MS && this.#pendingEvents <= 0)
      },
      10 * 60_000,
    )
  }

  collectFacts(): Promise<Facts> {
    return collectFacts(this.linkedInstances, this.network, this.recorder.arrivals)
  }

  /** Repeats every accepted call. @returns one sentence per response that is not a replay */
  async replay(): Promise<string[]> {
    return (await Promise.all(this.loads.map(load => load.replay()))).flat()
  }

  /** Deliveries that are not delivered, each as a sentence. */
  async listUndelivered(): Promise<string[]> {
    const undelivered: string[] = []
    for (const { client } of this.linkedInstances) {
      for (const state of ['pending', 'blocked', 'exhausted']) {
        const events = await this.admin.listEvents(client.id, `?state=${state}`)
        undelivered.push(...events.map(({ id }) => `${id} is ${state} at the end.`))
      }
    }
    return undelivered
  }

  async dispose(): Promise<void> {
    await Promise.all(this.nodes.map(node => node.dispose()))
    await this.recorder.close()
    await this.network?.close()
  }

  get loads(): Load[] {
    return this.linkedInstances.map(({ load }) => load).filter(load => load !== null)
  }

  #isBehind(): boolean {
    const { maxPendingEvents } = this.#options.load?.pace ?? BUSY
    if (performance.now() - this.#pendingEventsCountedAt > COUNT_PENDING_EVERY_MS) {
      this.#pendingEventsCountedAt = performance.now()
      this.#lastPendingEvents = this.#pendingEvents
    }
    return this.#lastPendingEvents > maxPendingEvents * this.linkedInstances.length
  }

  /** Events that have not arrived yet. */
  get #pendingEvents(): number {
    const expected = this.loads
      .flatMap(load => load.accepted)
      .reduce((sum, { end }) => sum + expectedKinds(end).length, 0)
    const received = this.loads.reduce((sum, { incoming }) => sum + incoming.length, 0)
    return expected + received - new Set(this.recorder.arrivals.map(({ eventId }) => eventId)).size
  }

  /** Scans the current QR code. It may be stale when the instance moves to another node. */
  async #scan(id: string): Promise<boolean> {
    const { state, cause, qr } = await this.admin.connection(id)
    if (qr !== null) await this.network?.scanQr(qr).catch(() => undefined)
    // Request linking again only if it was interrupted: a request while it waits for a code would restart it.
    else if (state === 'unlinked' && INTERRUPTED.has(cause)) await this.admin.connect(id).catch(() => undefined)
    return state === 'connecting' || state === 'connected'
  }

  async #addInstance(): Promise<void> {
    const { admin } = this
    const { id, token } = await admin.createInstance(this.network ? 'whatsapp' : 'sandbox')
    if (this.network) {
      await admin.connect(id)
      await until('a link', () => this.#scan(id))
    }
    const { phone } = await admin.untilState(id, 'connected')
    const client = instanceClient(() => this.#nextUrl(), id, token, this.nodes.length > 1 ? CALL_TIMEOUT_MS : undefined)
    const { secret } = await client.setWebhook(this.recorder.url)
    this.recorder.expect(id, secret)
    if (phone === null) throw new Error(`${id} is connected, but its number is unknown.`)
    this.linkedInstances.push({ client, phone, load: null })
  }
}
