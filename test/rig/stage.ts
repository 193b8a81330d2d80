import { type AdminClient, adminClient, instanceClient } from '../api-client.ts'
import type { TestDatabase } from '../database.ts'
import { type Network, startNetwork } from '../network.ts'
import { Service, ServiceDown, type ServiceOptions } from '../service.ts'
import { until } from '../until.ts'
import { collectFacts, type Player } from './collect-facts.ts'
import { eachOf } from './each-of.ts'
import type { Facts } from './facts.ts'
import { Hardship, type HardshipCounts } from './hardship.ts'
import { expectedKinds } from './judge.ts'
import { Load, type LoadOptions } from './load.ts'
import { Moments } from './moments.ts'
import { Random } from './random.ts'
import { Recorder } from './recorder.ts'

/** Nothing new for longer than a lease lasts: what has not come by then will not come. */
const SILENCE_MS = 120_000
/** Long enough to see an attempt that is one too many. */
const AFTERMATH_MS = 1_000
/** A caller waits so long for a node that hangs, then asks the next one; where there is one only, it waits. */
const CALL_TIMEOUT_MS = 4_000
const COUNT_UNDELIVERED_EVERY_MS = 500
const LINKED_AT_ONCE = 4
/** Causes of `unlinked` after which linking goes on only when it is asked for again. */
const INTERRUPTED: ReadonlySet<string | null> = new Set(['linking_interrupted', 'code_expired'])

export interface StageOptions {
  database: TestDatabase
  instances: number
  /** The instances are linked to the network inside the service, which is killed with it. */
  sandbox?: boolean
  seed: number
  /** What the instances have to do; default: as much as they can. */
  load?: Pick<LoadOptions, 'pace' | 'passing'>
  /** WhatsApp loses receipts, sends what cannot be decrypted, and names people now so, now so. */
  hardship?: boolean
  /** Options for Node itself, in the service's processes. */
  nodeOptions?: readonly string[]
  /** More options of the simulator's program. */
  networkOptions?: readonly string[]
  /** What each node is started with beside that; default: one node, and nothing more. */
  nodes?: readonly NodeOptions[]
}

export type NodeOptions = Pick<ServiceOptions, 'env' | 'nodeOptions' | 'program'>

export type { Player }

/**
 * The service on a store of its own, between a simulated WhatsApp in another process, a receiver, and callers that
 * repeat until they have their 202. Whoever makes one disposes of it.
 */
export class Stage {
  readonly recorder: Recorder
  /** Those that are, or could be, running. */
  readonly nodes: Service[]
  readonly network: Network | null
  readonly #options: StageOptions
  readonly #random: Random
  readonly #onAccepted = new Moments()
  readonly #onArrival = new Moments()
  readonly players: Player[] = []
  #hardship: Hardship | null = null
  /** How often WhatsApp did what; null before the load has ended. */
  hardships: HardshipCounts | null = null
  /** Boots of nodes that were replaced, and what else may have repeated an attempt. */
  #incidents = 0
  #calls = 0
  #undeliveredLately = 0
  #undeliveredAt = Number.NEGATIVE_INFINITY
  /** How long the first start took. */
  startUpMs = 0

  private constructor(options: StageOptions, network: Network | null) {
    this.#options = options
    this.#random = new Random(options.seed)
    this.network = network
    this.nodes = (options.nodes ?? [{}]).map(node => this.#createNode(node))
    this.recorder = new Recorder({
      boot: () => this.nodes.reduce((sum, { boots }) => sum + boots, this.#incidents),
      random: this.#random.fork(),
      onArrival: () => this.#onArrival.happened(),
    })
  }

  /** Every instance is linked and connected, and has its webhook. */
  static async open(options: StageOptions): Promise<Stage> {
    const stage = new Stage(options, options.sandbox ? null : await startNetwork(options.networkOptions))
    try {
      await stage.recorder.listen()
      const startedAt = performance.now()
      for (const node of stage.nodes) await node.start()
      stage.startUpMs = (performance.now() - startedAt) / stage.nodes.length
      const numbers = Array.from({ length: options.instances }, (_, n) => n)
      await eachOf(numbers, LINKED_AT_ONCE, () => stage.#addPlayer())
      if (options.hardship && stage.network) stage.#hardship = await Hardship.begin(stage.network, stage.random)
      return stage
    } catch (error) {
      await stage.dispose()
      throw error
    }
  }

  /** The first node, where there is but one. */
  get service(): Service {
    return this.nodes[0]!
  }

  /** Through whichever node is up. */
  get admin(): AdminClient {
    return adminClient(() => this.#nextUrl(), this.service.adminKey)
  }

  get database(): TestDatabase {
    return this.#options.database
  }

  /** What is repeated from now on is put down to what happens now. */
  noteIncident(): void {
    this.#incidents += 1
  }

  /** Puts another one, not started yet, into the place of a node that has ended. */
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
        RATE_LIMIT_PER_MINUTE: '1000000',
        ...(network ? { WHATSAPP_URL: network.url, SANDBOX: 'off' } : {}),
        ...this.#options.database.env,
        ...env,
      },
    })
  }

  /** In turn, as a load balancer would that has not noticed yet that a node hangs. */
  #nextUrl(): string {
    const urls = this.nodes.map(({ url }) => url).filter(url => url !== null)
    this.#calls += 1
    const url = urls[this.#calls % urls.length]
    if (url === undefined) throw new ServiceDown()
    return url
  }

  /** A random sequence for whoever directs the run. */
  get random(): Random {
    return this.#random.fork()
  }

  startLoad(): void {
    for (const player of this.players) {
      player.load = new Load({
        instance: player.client,
        phone: player.phone,
        network: this.network,
        random: this.#random.fork(),
        hardship: this.#hardship,
        ...this.#options.load,
        isBehind: () => this.#isBehind(),
        onAccepted: () => this.#onAccepted.happened(),
      })
    }
  }

  /** Resolves once everything offered has its 202. WhatsApp then behaves well, and delivers again what was not confirmed. */
  async stopLoad(): Promise<void> {
    await Promise.all(this.loads.map(load => load.stop()))
    if (this.#hardship === null || this.network === null) return
    this.hardships = await this.#hardship.end()
    for (const { phone, load } of this.players) {
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
   * Waits until every instance has reported a message accepted after this call. @returns after how many milliseconds
   * @throws when that takes too long
   */
  async untilRecovered(withinMs: number): Promise<number> {
    const startedAt = performance.now()
    const counts = this.loads.map(load => load.accepted.length)
    const hasReported = (load: Load, index: number) => {
      if (load.failure !== null) throw load.failure
      return load.accepted.slice(counts[index]).some(({ messageId }) => this.recorder.hasReported(messageId))
    }
    await until('every instance to work again', () => this.loads.every(hasReported), withinMs)
    return performance.now() - startedAt
  }

  /** Waits until WhatsApp has let every instance in. */
  async untilConnected(withinMs: number): Promise<void> {
    const { network } = this
    if (network === null) return
    const phones = this.players.map(({ phone }) => phone)
    const look = async () => {
      const accounts = await network.accounts()
      return phones.every(phone => accounts.some(account => account.phone === phone && account.online))
    }
    await until('every instance to log in', look, withinMs)
  }

  /** WhatsApp answers nothing until it is resumed. */
  pauseWhatsapp(): void {
    this.network?.pause()
  }

  resumeWhatsapp(): void {
    this.network?.resume()
  }

  /** Resolves once every event has arrived, or none has for a long while. */
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
        return quietMs > SILENCE_MS || (quietMs > AFTERMATH_MS && this.#undelivered <= 0)
      },
      10 * 60_000,
    )
  }

  collectFacts(): Promise<Facts> {
    return collectFacts(this.players, this.network, this.recorder.arrivals)
  }

  /** Everything accepted is offered again. @returns what was not answered as a replay */
  async replay(): Promise<string[]> {
    return (await Promise.all(this.loads.map(load => load.replay()))).flat()
  }

  /** Deliveries that are still undelivered, each as a sentence. */
  async listUndelivered(): Promise<string[]> {
    const undelivered: string[] = []
    for (const { client } of this.players) {
      for (const state of ['pending', 'blocked', 'exhausted']) {
        const events = await this.admin.listEvents(client.id, `?state=${state}`)
        undelivered.push(...events.map(({ id }) => `${id} is ${state} in the end.`))
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
    return this.players.map(({ load }) => load).filter(load => load !== null)
  }

  #isBehind(): boolean {
    const { mostUndelivered } = this.#options.load?.pace ?? {}
    if (mostUndelivered === undefined) return false
    if (performance.now() - this.#undeliveredAt > COUNT_UNDELIVERED_EVERY_MS) {
      this.#undeliveredAt = performance.now()
      this.#undeliveredLately = this.#undelivered
    }
    return this.#undeliveredLately > mostUndelivered * this.players.length
  }

  /** Events that have not arrived yet. */
  get #undelivered(): number {
    const expected = this.loads
      .flatMap(load => load.accepted)
      .reduce((sum, { end }) => sum + expectedKinds(end).length, 0)
    const received = this.loads.reduce((sum, { incoming }) => sum + incoming.length, 0)
    return expected + received - new Set(this.recorder.arrivals.map(({ eventId }) => eventId)).size
  }

  /** Scans what is on show, as a person would: a code may be out of date when an instance changes its node. */
  async #scan(id: string): Promise<boolean> {
    const { state, cause, qr } = await this.admin.connection(id)
    if (qr !== null) await this.network?.scanQr(qr).catch(() => undefined)
    // Linking that was interrupted rests until it is asked for again; one that waits for its code would begin anew.
    else if (state === 'unlinked' && INTERRUPTED.has(cause)) await this.admin.connect(id).catch(() => undefined)
    return state === 'connecting' || state === 'connected'
  }

  async #addPlayer(): Promise<void> {
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
    if (phone === null) throw new Error(`${id} is connected, and its number is not known.`)
    this.players.push({ client, phone, load: null })
  }
}
