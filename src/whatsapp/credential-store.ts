import {
  type AuthenticationCreds,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
  type SignalKeyStore,
} from 'baileys'
import type { Credentials, Lease } from '../store/store.ts'
import { MemoryCache } from './memory-cache.ts'
import { untilStored } from './patience.ts'

/** Our own types among the Signal keys' rows. */
export type RowType = keyof SignalDataTypeMap | 'creds' | 'devices' | 'journal'

/** The one row that holds an account's credentials. */
const CREDS = { type: 'creds', id: 'creds' } as const

/** Read at every send; the others are read once in a while, and pre-keys alone would be 812 per instance. */
const CACHED: ReadonlySet<string> = new Set<RowType>([
  'session',
  'sender-key',
  'sender-key-memory',
  'lid-mapping',
  'device-list',
  'tctoken',
  'identity-key',
])
const CACHED_ENTRIES = 4_000

/** Longer than a restart of the database; after that the socket is given up rather than run ahead of what is stored. */
const STORE_PATIENCE_MS = 10_000

export interface CredentialStoreOptions {
  lease: Lease
  credentials: Credentials
  /** A write failed for good: memory is ahead of the store, and the socket must end at once. */
  onBroken(error: unknown): void
}

/**
 * The credentials and Signal keys of one socket: a cache in front of the store, thrown away with the socket, so that
 * the next one starts from what is stored. Every `set` is one commit, and takes changed credentials along, so that
 * pre-keys and the counter that numbers them never part.
 */
export class CredentialStore {
  readonly creds: AuthenticationCreds
  readonly #options: CredentialStoreOptions
  readonly #cache = new MemoryCache(CACHED_ENTRIES)
  readonly #closed = new AbortController()
  #credsChanged = false
  /** Writes of the credentials go one after another: an older state must never land on a newer one. */
  #credsWritten: Promise<void> = Promise.resolve()

  private constructor(options: CredentialStoreOptions, creds: AuthenticationCreds) {
    this.#options = options
    this.creds = creds
  }

  /** Null when the instance is not linked. */
  static async find(options: CredentialStoreOptions): Promise<CredentialStore | null> {
    const rows = await options.credentials.get(options.lease.instanceId, CREDS.type, [CREDS.id])
    const row = rows.get(CREDS.id)
    return row ? new CredentialStore(options, decode(row) as AuthenticationCreds) : null
  }

  /** New credentials; stored only once a phone has confirmed them, so that an abandoned attempt leaves nothing. */
  static create(options: CredentialStoreOptions): CredentialStore {
    return new CredentialStore(options, initAuthCreds())
  }

  readonly keys: SignalKeyStore = {
    get: async (type, ids) => {
      const found: { [id: string]: SignalDataTypeMap[typeof type] } = {}
      for (const [id, value] of await this.read(type, ids)) found[id] = revive(type, value) as (typeof found)[string]
      return found
    },
    set: async (data: SignalDataSet) => {
      const changes = Object.entries(data).flatMap(([type, rows]) =>
        Object.entries(rows).map(([id, value]) => ({ type: type as RowType, id, value: value ?? null })),
      )
      await this.write(changes)
    },
  }

  async read(type: RowType, ids: readonly string[]): Promise<Map<string, unknown>> {
    const found = new Map<string, unknown>()
    const missing: string[] = []
    for (const id of ids) {
      const key = `${type}/${id}`
      if (!this.#cache.has(key)) missing.push(id)
      else if (this.#cache.get(key) !== null) found.set(id, this.#cache.get(key))
    }
    if (missing.length === 0) return found
    const rows = await untilStored(
      () => this.#options.credentials.get(this.#options.lease.instanceId, type, missing),
      this.#closed.signal,
      STORE_PATIENCE_MS,
    )
    for (const id of missing) {
      const row = rows.get(id)
      const value = row ? decode(row) : null
      const key = `${type}/${id}`
      // A write that came in between is newer than what was read.
      if (CACHED.has(type) && !this.#cache.has(key)) this.#cache.set(key, value)
      if (value !== null) found.set(id, value)
    }
    return found
  }

  /** All changes in one commit, with the credentials if they changed; null deletes. Resolves once they are durable. */
  async write(changes: readonly { type: RowType; id: string; value: unknown }[]): Promise<void> {
    const rows = changes.map(({ type, id, value }) => ({ type, id, value: value === null ? null : encode(value) }))
    if (this.#credsChanged) await this.#inOrder(() => this.#commit([...rows, ...this.#takeCreds()]))
    else if (rows.length > 0) await this.#commit(rows)
    for (const { type, id, value } of changes) if (CACHED.has(type)) this.#cache.set(`${type}/${id}`, value)
  }

  /** Notes that `creds` changed; they are stored with the next write, or by `flush`. */
  touchCreds(): void {
    // Before the phone's signature is there, a login with these credentials would be refused.
    this.#credsChanged = this.creds.account !== undefined
  }

  /** Resolves once the credentials as they are now are stored. */
  async flush(): Promise<void> {
    if (this.#credsChanged) await this.write([])
    else await this.#credsWritten
  }

  /** No more patience with the store: writes that wait for it fail. */
  close(): void {
    this.#closed.abort()
  }

  #takeCreds(): { type: string; id: string; value: Uint8Array }[] {
    if (!this.#credsChanged) return []
    this.#credsChanged = false
    return [{ ...CREDS, value: encode(this.creds) }]
  }

  #inOrder(commit: () => Promise<void>): Promise<void> {
    const written = this.#credsWritten.then(commit)
    this.#credsWritten = written.catch(() => undefined)
    return written
  }

  async #commit(rows: { type: string; id: string; value: Uint8Array | null }[]): Promise<void> {
    if (rows.length === 0) return
    try {
      const { credentials, lease } = this.#options
      await untilStored(() => credentials.set(lease, rows), this.#closed.signal, STORE_PATIENCE_MS)
    } catch (error) {
      this.#options.onBroken(error)
      throw error
    }
  }
}

function encode(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value, bytesToJson))
}

function decode(row: Uint8Array): unknown {
  return JSON.parse(Buffer.from(row).toString(), bytesFromJson)
}

/** Sees a Buffer after its own `toJSON`, and any other byte array as it is. */
function bytesToJson(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return { type: 'Buffer', data: Buffer.from(value).toString('base64') }
  const json = value as { type?: unknown; data?: unknown } | null
  if (json?.type === 'Buffer' && Array.isArray(json.data)) {
    return { type: 'Buffer', data: Buffer.from(json.data as number[]).toString('base64') }
  }
  return value
}

function bytesFromJson(_key: string, value: unknown): unknown {
  const json = value as { type?: unknown; data?: unknown } | null
  return json?.type === 'Buffer' && typeof json.data === 'string' ? Buffer.from(json.data, 'base64') : value
}

/** What Baileys expects of a value read: copies of what it changes in place, a message where it wants one. */
function revive(type: RowType, value: unknown): unknown {
  if (type === 'sender-key-memory') return { ...(value as object) }
  if (type === 'device-list') return [...(value as string[])]
  if (type === 'app-state-sync-key') return proto.Message.AppStateSyncKeyData.fromObject(value as object)
  return value
}
