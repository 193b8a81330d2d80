import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { inject } from 'vitest'
import { type ApiOptions, type ApiSettings, createServer } from '../../../src/api/server.ts'
import { readSettings } from '../../../src/config.ts'
import type { StoredConnection } from '../../../src/domain/connection/connection.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { openMedia } from '../../../src/media/open-media.ts'
import { createAddressGuard } from '../../../src/outbound/address-guard.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import { openStore } from '../../../src/store/open-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { signatureHeaders, signingKeys } from '../../../src/webhooks/posting/signature.ts'
import { readInThread } from '../../../src/whatsapp/threads/read-session.ts'
import { PREPARED } from '../../contract/fixture.ts'
import { createDatabase, type StoreKind } from '../../databases/database.ts'
import { captureLog, noteBody, noteSecret } from '../../logs/log-capture.ts'
import { ApiDocument } from './document.ts'

export const ADMIN_KEY = 'admin-key-of-these-tests-0123456789'
const PLENTY = 1_000_000
const { ratePerMinute, retentionMs, webhook } = readSettings({})
export const API_SETTINGS: ApiSettings = {
  adminKey: ADMIN_KEY,
  retentionMs,
  documented: {
    ratePerMinute,
    webhookTimeoutMs: webhook.timeoutMs,
    webhookRetryDelaysMs: webhook.retryDelaysMs,
  },
}

/** Small enough to reach. */
export const API_MEDIA = { retentionMs: 30 * 86_400_000, quotaBytes: 3_000_000, bytesPerMinute: 1e12 }

export interface Answer {
  status: number
  headers: Headers
  /** Undefined if there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into whatever was answered
  body: any
  text: string
}

export interface Call {
  method?: string
  path: string
  /** Sent as `Authorization: Bearer …`. */
  key?: string | undefined
  headers?: Record<string, string>
  /** A string is sent as it is, anything else as JSON. */
  body?: unknown
}

export interface Created {
  id: string
  token: string
}

export interface ApiHarnessOptions {
  /** Default: SQLite. */
  on?: StoreKind
  ratePerMinute?: number
  /** Takes the place of parts of the store. */
  store?: (store: Store) => Partial<Store>
  options?: Partial<ApiOptions>
}

/** The real HTTP server on loopback over the real store; no instance is run by anybody but the test. */
export class ApiHarness {
  readonly url: string
  readonly port: number
  readonly store: Store
  readonly logged: Record<string, unknown>[]
  /** What simulated contacts wrote. */
  readonly written: unknown[]
  readonly server: Awaited<ReturnType<typeof createServer>>
  readonly #document: ApiDocument
  readonly #leases = new Map<string, Lease>()
  readonly #whatsappIds = new Map<string, string>()
  readonly mediaDir: string
  readonly #dispose: () => Promise<void>

  private constructor(parts: {
    store: Store
    logged: Record<string, unknown>[]
    written: unknown[]
    server: Awaited<ReturnType<typeof createServer>>
    mediaDir: string
    dispose: () => Promise<void>
  }) {
    this.mediaDir = parts.mediaDir
    this.store = parts.store
    this.logged = parts.logged
    this.written = parts.written
    this.server = parts.server
    this.port = (parts.server.server.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}`
    this.#document = new ApiDocument(parts.server.swagger())
    this.#dispose = parts.dispose
  }

  static async start({ on = 'sqlite', ratePerMinute = PLENTY, store: replace, options = {} }: ApiHarnessOptions = {}) {
    const dataDir = mkdtempSync(join(tmpdir(), 'pombal-api-'))
    const logged: Record<string, unknown>[] = []
    const written: unknown[] = []
    const write = (line: string) => {
      captureLog(line)
      logged.push(JSON.parse(line))
    }
    const logger = pino({ level: 'trace' }, { write })
    const database = await createDatabase(on, inject('postgresUrl'))
    const databaseUrl = database.url ?? undefined
    const store = await openStore({ dataDir, databaseUrl, masterKey: randomBytes(32), ratePerMinute, logger })
    const guard = createAddressGuard({ loopbackAndPrivateAllowed: false, allowedNetworks: [], ownPorts: [] })
    const media = await openMedia({
      ...API_MEDIA,
      place: { kind: 'folder', path: join(dataDir, 'media') },
      store,
      ownPorts: [],
      version: '1.2.3',
      logger,
    })
    const server = await createServer({
      store: replace ? { ...parts(store), ...replace(store) } : store,
      settings: { ...API_SETTINGS, streamPollMs: 50 },
      logger,
      checkWebhookUrl: guard.checkLiteral,
      alerts: { canMail: true, sendTest: async () => null },
      readSession: readInThread,
      proxies: { check: async () => undefined },
      sandbox: {
        enabled: true,
        async writeAs(instanceId, message) {
          if (message.from === '15005550099') throw new Refusal('instance_not_connected')
          written.push({ instanceId, ...message })
          return { id: '3EB0AAAA' }
        },
        isPhoneOn: async () => true,
        switchPhone: async () => undefined,
      },
      webhooks: {
        headersOf: ({ secrets, ...attempt }) =>
          signatureHeaders({ ...attempt, keys: signingKeys(secrets), version: '1.2.3' }),
        post: async () => ({ kind: 'answered', status: 204, excerpt: null }),
      },
      media: media.library,
      panelDir: join(dataDir, 'no-panel'),
      version: '1.2.3',
      metrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: 'pombal_store_up 1\n' }),
      isReady: () => true,
      ...options,
    })
    await server.listen({ host: '127.0.0.1', port: 0 })
    const dispose = async () => {
      await server.close()
      await media.close()
      await store.close()
      await database.dispose()
      rmSync(dataDir, { recursive: true, force: true })
    }
    return new ApiHarness({ store, logged, written, server, mediaDir: join(dataDir, 'media'), dispose })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose()
  }

  /** Checks every response against the OpenAPI document: status, code and every field. */
  async call({ method = 'GET', path, key, headers = {}, body }: Call): Promise<Answer> {
    noteSecret(key)
    noteBody(body)
    const response = await fetch(this.url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
    const answer = {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    }
    noteBody(answer.body)
    this.#document.check(method, path, answer.status, answer.body)
    return answer
  }

  admin(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.call({ method, path: `/admin/v1${path}`, key: ADMIN_KEY, body })
  }

  async createInstance(kind: 'whatsapp' | 'sandbox' = 'whatsapp', name = 'test'): Promise<Created> {
    const { body } = await this.admin('POST', '/instances', { kind, name })
    return body.data
  }

  /** An instance whose connection is on record as `connected`, by an owner whose lease is alive. */
  async createConnected(kind: 'whatsapp' | 'sandbox' = 'whatsapp'): Promise<Created> {
    const created = await this.createInstance(kind)
    await this.record(created.id, { state: 'connected', reason: 'Connected.', phone: '5511900000000' })
    return created
  }

  async lease(id: string): Promise<Lease> {
    await this.store.leases.attend('test')
    for (const lease of await this.store.leases.acquire('test', 1_000)) this.#leases.set(lease.instanceId, lease)
    return this.#leases.get(id)!
  }

  async record(id: string, change: Partial<StoredConnection>): Promise<void> {
    await this.store.connections.record(await this.lease(id), change, Date.now())
  }

  send({ token }: Created, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call({ method: 'POST', path: '/v1/messages/text', key: token, body, headers })
  }

  /** Moves an accepted message to the state `reached`, as the owner of its instance would. */
  async progress(instance: Created, messageId: string, reached: 'sent' | 'delivered' | 'read'): Promise<void> {
    const lease = await this.lease(instance.id)
    const whatsappId = await this.#prepare(instance, lease, messageId)
    await this.store.messages.recordProgress(lease, whatsappId, reached, Date.now())
  }

  /** @returns its WhatsApp ID. The store lists it only while the message is queued, so the first call remembers it. */
  async #prepare(instance: Created, lease: Lease, messageId: string): Promise<string> {
    const queued = await this.store.messages.listQueued(instance.id, 1_000)
    const found = queued.find(({ id }) => id === messageId)
    if (found) {
      await this.store.messages.recordPrepared(lease, messageId, PREPARED)
      this.#whatsappIds.set(messageId, found.whatsappId)
    }
    return this.#whatsappIds.get(messageId)!
  }
}

/** The parts of a store, which may be getters of a class. */
function parts(store: Store): Store {
  return {
    clock: store.clock,
    hints: store.hints,
    foreground: store.foreground,
    admission: store.admission,
    instances: store.instances,
    apiKeys: store.apiKeys,
    connections: store.connections,
    handouts: store.handouts,
    messages: store.messages,
    conversations: store.conversations,
    media: store.media,
    downloads: store.downloads,
    fetches: store.fetches,
    events: store.events,
    endpoints: store.endpoints,
    operatorEndpoints: store.operatorEndpoints,
    deliveries: store.deliveries,
    leases: store.leases,
    credentials: store.credentials,
    transfers: store.transfers,
    numbers: store.numbers,
    directory: store.directory,
    paces: store.paces,
    sandbox: store.sandbox,
    phoneOrders: store.phoneOrders,
    retention: store.retention,
    statistics: store.statistics,
    sessions: store.sessions,
    alerts: store.alerts,
    accounts: store.accounts,
    audit: store.audit,
    ping: () => store.ping(),
    close: () => store.close(),
  }
}
