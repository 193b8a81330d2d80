import { randomBytes } from 'node:crypto'
import type { BinaryNode } from 'baileys'
import { pino } from 'pino'
import { newInstanceId, newWhatsappId } from '../../src/domain/ids.ts'
import { openKeys } from '../../src/keys.ts'
import type { ConnectionRecord } from '../../src/store/connections/connections.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { encodeContent } from '../../src/whatsapp/baileys/encode-content.ts'
import { createLibraryCaches } from '../../src/whatsapp/baileys/library-caches.ts'
import { Link, type LinkEvents } from '../../src/whatsapp/baileys/link.ts'
import { DeviceCache } from '../../src/whatsapp/baileys/recipient-devices.ts'
import { CredentialStore } from '../../src/whatsapp/baileys/signal/credential-store.ts'
import { createRetryBudgets } from '../../src/whatsapp/baileys/signal/retry-requests.ts'
import type { Network } from '../../src/whatsapp/baileys/socket-options.ts'
import { type Connection, createConnection } from '../../src/whatsapp/connection/connection.ts'

const NAME = 'live check'
const OWNER = 'live-check'
const DAY_MS = 86_400_000

export interface AccountOptions {
  dataDir: string
  network: Network
  version?: [number, number, number] | undefined
  /** Whether a number can be linked with its passkey. */
  passkeys: boolean
}

/** A text to send. The ID can be used again. */
export interface Draft {
  whatsappId: string
  content: Uint8Array
}

export function createDraft(text: string): Draft {
  const context = { address: '', self: {}, group: null, mentioned: [], quoted: null, now: 0 }
  return { whatsappId: newWhatsappId(), content: encodeContent(text, {}, context) }
}

/** The spare number, linked by Pombal's driver with its own store. One socket at a time. */
export class Account {
  readonly store: Store
  readonly #lease: Lease
  readonly #options: AccountOptions
  readonly #logger = pino({ level: 'silent' })
  #connection: Connection | null = null
  #link: Link | null = null

  private constructor(options: AccountOptions, store: Store, lease: Lease) {
    this.#options = options
    this.store = store
    this.#lease = lease
  }

  /** A data folder that was used before still has its linked number. */
  static async open(options: AccountOptions): Promise<Account> {
    const { masterKey } = openKeys({ ...options, databaseUrl: null, adminKey: null, masterKey: null })
    const store = await openStore({ dataDir: options.dataDir, masterKey, ratePerMinute: 1 })
    const known = (await store.instances.list({ limit: 200 })).data.find(({ name }) => name === NAME)
    const id = known?.id ?? newInstanceId()
    if (!known) {
      const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
      const tokenDigest = randomBytes(32)
      const instance = { id, name: NAME, kind: 'whatsapp', tokenDigest, webhookSecret, goal: 'idle' } as const
      await store.instances.create(instance, Date.now())
    }
    await store.leases.acquire(OWNER, 1)
    const lease = (await store.leases.renew(OWNER)).find(({ instanceId }) => instanceId === id)
    if (!lease) throw new Error('The data folder is in use.')
    return new Account(options, store, lease)
  }

  get instanceId(): string {
    return this.#lease.instanceId
  }

  /** The connection as the driver reports it. */
  async state(): Promise<ConnectionRecord> {
    const record = await this.store.connections.find(this.instanceId)
    if (!record) throw new Error('The instance no longer exists.')
    return record
  }

  /** Starts the whole driver, which links the number if necessary and stays connected. */
  async connect(): Promise<void> {
    await this.store.connections.requestConnect(this.instanceId, null)
    this.#start()
  }

  /** Starts the whole driver, which unlinks the number. */
  async logOut(): Promise<void> {
    await this.store.connections.requestLogout(this.instanceId)
    this.#start()
  }

  #start(): void {
    const { network, version, passkeys } = this.#options
    this.#connection = createConnection({
      lease: this.#lease,
      store: this.store,
      network,
      settings: { ...(version && { version }), passkeys, messageTtlMs: DAY_MS },
      logger: this.#logger,
      onLeaseLost: () => undefined,
    })
    this.#connection.start()
  }

  async disconnect(): Promise<void> {
    this.#link?.close()
    this.#link = null
    await this.#connection?.stop()
    this.#connection = null
  }

  /** Opens only the driver's link, so that each received stanza can be inspected. */
  async openLink(events: LinkEvents, onStanza: (stanza: BinaryNode) => void): Promise<Link> {
    const { network, version } = this.#options
    const credentials = await CredentialStore.find({
      lease: this.#lease,
      credentials: this.store.credentials,
      onBroken: () => this.#link?.close(),
    })
    if (!credentials) throw new Error('The number is not linked.')
    this.#link = new Link({
      network,
      version,
      credentials,
      devices: new DeviceCache(Date.now),
      caches: createLibraryCaches(),
      findGroup: async () => null,
      refreshGroup: async () => undefined,
      findSent: async () => null,
      retryBudgets: createRetryBudgets(() => performance.now()),
      events,
      onStanza,
      logger: this.#logger,
    })
    return this.#link
  }

  async countReceived(): Promise<number> {
    return (await this.store.events.list(this.instanceId, { limit: 200 }, { kind: 'message.received' })).data.length
  }

  async knowsLidOf(number: string): Promise<boolean> {
    return (await this.store.credentials.get(this.instanceId, 'lid-mapping', [number])).size > 0
  }

  async close(): Promise<void> {
    await this.disconnect()
    await this.store.close()
  }
}
