import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { newWebhookSecret } from '../../../src/api/admin/secrets.ts'
import { newEventId, newInstanceId, newMessageId } from '../../../src/domain/ids.ts'
import { type AddressPolicy, createAddressGuard } from '../../../src/outbound/address-guard.ts'
import type { Lookup } from '../../../src/outbound/resolver.ts'
import type { EventDetail } from '../../../src/store/events/events.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import { openStore } from '../../../src/store/open-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { Dispatcher, type DispatcherOptions } from '../../../src/webhooks/dispatcher.ts'
import { createPoster, type Poster } from '../../../src/webhooks/posting/post.ts'
import { createDatabase, type StoreKind, type TestDatabase } from '../../databases/database.ts'
import { until } from '../../until.ts'

export interface HarnessSettings {
  timeoutMs: number
  retryDelaysMs: readonly number[]
  policy: AddressPolicy
  resolve?: Lookup
  /** Put between the dispatcher and the store. */
  wrap?: (store: Store) => DispatcherOptions['store']
}

const SETTINGS: HarnessSettings = {
  timeoutMs: 30_000,
  retryDelaysMs: [30, 60, 90, 120, 150],
  policy: { loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] },
}
const RECORDED_AT_ONCE = 250
const OWNER = 'test'

/** The webhooks module on a real store, composed as in app.ts, without API and WhatsApp. */
export class WebhookHarness {
  store!: Store
  dispatcher!: Dispatcher
  #poster!: Poster
  readonly #settings: HarnessSettings
  readonly #database: TestDatabase
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'pombal-webhooks-'))
  readonly #masterKey = randomBytes(32)
  readonly #leases = new Map<string, Lease>()

  private constructor(database: TestDatabase, settings: HarnessSettings) {
    this.#database = database
    this.#settings = settings
  }

  static async open(
    kind: StoreKind,
    postgresUrl: string,
    settings: Partial<HarnessSettings> = {},
  ): Promise<WebhookHarness> {
    const harness = new WebhookHarness(await createDatabase(kind, postgresUrl), { ...SETTINGS, ...settings })
    await harness.start()
    return harness
  }

  /** Gives every stored instance a lane, as at a start. */
  async start(): Promise<void> {
    const { url } = this.#database
    this.store = await openStore({
      dataDir: this.#dataDir,
      ...(url !== null && { databaseUrl: url }),
      masterKey: this.#masterKey,
      ratePerMinute: 100,
    })
    this.startLanes()
    await this.#acquire()
  }

  startLanes(settings: Partial<HarnessSettings> = {}): void {
    const { timeoutMs, retryDelaysMs, policy, resolve, wrap } = { ...this.#settings, ...settings }
    this.#poster = createPoster({ guard: createAddressGuard(policy), timeoutMs, ...(resolve && { resolve }) })
    this.dispatcher = new Dispatcher({
      store: wrap ? wrap(this.store) : this.store,
      post: this.#poster,
      settings: { retryDelaysMs, version: '0.0.0' },
      logger: pino({ level: 'silent' }),
      onLeaseLost: () => {},
    })
    for (const lease of this.#leases.values()) this.dispatcher.open(lease)
  }

  async stopLanes(graceMs?: number): Promise<void> {
    await this.dispatcher.close(graceMs)
    await this.#poster.close()
  }

  async stop(): Promise<void> {
    await this.stopLanes()
    for (const lease of this.#leases.values()) await this.store.leases.release(lease)
    this.#leases.clear()
    await this.store.close()
  }

  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.#database.dispose()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }

  /** An instance with its webhook, owned by this node. */
  async addInstance(url: string): Promise<TestInstance> {
    const id = newInstanceId()
    const secret = newWebhookSecret()
    const tokenDigest = randomBytes(32)
    const instance = {
      id,
      name: 'test',
      kind: 'whatsapp' as const,
      tokenDigest,
      webhookSecret: secret,
      goal: 'idle' as const,
    }
    await this.store.instances.create(instance, Date.now())
    await this.store.instances.setWebhookUrl(id, url)
    await this.#acquire()
    return new TestInstance(this, id, secret)
  }

  leaseOf(instanceId: string): Lease {
    const lease = this.#leases.get(instanceId)
    if (!lease) throw new Error(`${instanceId} is not owned.`)
    return lease
  }

  async #acquire(): Promise<void> {
    await this.store.leases.attend(OWNER)
    for (const lease of await this.store.leases.acquire(OWNER, 1_000)) {
      this.#leases.set(lease.instanceId, lease)
      this.dispatcher.open(lease)
    }
  }
}

/** One instance, with functions that cause the events of its webhook. */
export class TestInstance {
  readonly id: string
  readonly secret: string
  readonly #harness: WebhookHarness
  #received = 0

  constructor(harness: WebhookHarness, id: string, secret: string) {
    this.#harness = harness
    this.id = id
    this.secret = secret
  }

  /** Records an incoming message: one event that waits for no other. */
  async receive(text = 'hello'): Promise<string> {
    this.#received += 1
    const now = Date.now()
    const id = `IN${this.#received}-${randomBytes(4).toString('hex')}`
    const from = '351912345678'
    const sender = { from, chat: from, lid: null, username: null }
    const message = { id, ...sender, type: 'text' as const, text, sentAt: now }
    await this.#harness.store.events.storeIncoming(this.#lease, message, now)
    return id
  }

  async receiveMany(count: number): Promise<void> {
    for (let left = count; left > 0; left -= RECORDED_AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(left, RECORDED_AT_ONCE) }, () => this.receive()))
    }
  }

  /** Records that a message was sent, delivered and read: three events, each of which waits for the previous one. */
  async sendAndRead(): Promise<string> {
    const { store } = this.#harness
    await store.connections.record(this.#lease, { state: 'connected', reason: 'test' }, Date.now())
    const now = Date.now()
    const id = newMessageId(now)
    const whatsappId = newEventId(now)
    const content = new Uint8Array(50)
    await store.messages.accept({ id, instanceId: this.id, to: '351912345678', text: 'hello', whatsappId }, now)
    await store.messages.recordPrepared(this.#lease, id, { address: '351912345678@s.whatsapp.net', content })
    await store.messages.recordProgress(this.#lease, whatsappId, 'sent', now)
    await store.messages.recordProgress(this.#lease, whatsappId, 'read', now + 1)
    return id
  }

  /** The instance's events, oldest first, with their deliveries and attempts. */
  async log(): Promise<EventDetail[]> {
    const { data } = await this.#harness.store.events.list(this.id, { limit: 200 })
    const details = await Promise.all(data.toReversed().map(({ id }) => this.#harness.store.events.find(this.id, id)))
    return details.filter(detail => detail !== null)
  }

  /** Waits until every event of the instance has ended in `state`. */
  async untilAll(state: 'delivered' | 'exhausted', withinMs?: number): Promise<EventDetail[]> {
    const look = async () => {
      const log = await this.log()
      return log.length > 0 && log.every(({ delivery }) => delivery?.state === state) && log
    }
    return until(`all deliveries to be ${state}`, look, withinMs)
  }

  get #lease(): Lease {
    return this.#harness.leaseOf(this.id)
  }
}
