import {
  type AuthenticationCreds,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
  type SignalKeyStore,
} from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { Credentials } from '../../../store/credentials/credentials.ts'
import type { Lease } from '../../../store/leases/leases.ts'
import { untilStored } from '../../../store/until-stored.ts'
import { outsideLibrary } from '../library-scope.ts'
import { ownBytes } from './own-bytes.ts'

/** Our own types among the Signal keys' rows. */
export type RowType = keyof SignalDataTypeMap | 'creds' | 'devices' | 'journal' | 'journal-large'

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

/** A row of the store, by type and id. */
interface Row {
  type: RowType
  id: string
  value: unknown
}

/**
 * The credentials and Signal keys of one socket: a cache in front of the store, thrown away with the socket, so that
 * the next one starts from what is stored. Changes are seen at once and committed in order, one commit at a time, each with
 * all that has gathered meanwhile; credentials that changed go along, so that pre-keys and the counter that numbers
 * them never part. Whoever lets something out that depends on a change waits for `settled` first.
 */
export class CredentialStore {
  readonly creds: AuthenticationCreds
  readonly #options: CredentialStoreOptions
  readonly #cache = new BoundedMap<string, unknown>(CACHED_ENTRIES)
  readonly #closed = new AbortController()
  /** Not committed yet, by type and id. */
  #gathered = new Map<string, Row>()
  #committing = new Map<string, Row>()
  #credsChanged = false
  /** The commit that runs, and the one after it, which takes what is gathered. */
  #current: Promise<void> = Promise.resolve()
  #next: Promise<void> | null = null
  #broken = false

  private constructor(options: CredentialStoreOptions, creds: AuthenticationCreds) {
    this.#options = outsideLibrary({ ...options, credentials: outsideLibrary(options.credentials) })
    this.creds = creds
  }

  /** Null when the instance is not linked. */
  static async find(options: CredentialStoreOptions): Promise<CredentialStore | null> {
    const rows = await options.credentials.get(options.lease.instanceId, CREDS.type, [CREDS.id])
    const row = rows.get(CREDS.id)
    return row ? new CredentialStore(options, decode(row) as AuthenticationCreds) : null
  }

  /** Whether the instance is linked. */
  static async exist(credentials: Credentials, instanceId: string): Promise<boolean> {
    return (await credentials.get(instanceId, CREDS.type, [CREDS.id])).size > 0
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
      const written = this.write(
        Object.entries(data).flatMap(([type, rows]) =>
          Object.entries(rows).map(([id, value]) => ({ type: type as RowType, id, value: value ?? null })),
        ),
      )
      // WhatsApp is given their public halves next. Whatever else depends on a change waits for `settled`.
      if (data['pre-key']) await written
    },
  }

  async read(type: RowType, ids: readonly string[]): Promise<Map<string, unknown>> {
    const found = new Map<string, unknown>()
    const missing: string[] = []
    for (const id of ids) {
      const known = this.#known(`${type}/${id}`)
      if (known === undefined) missing.push(id)
      else if (known !== null) found.set(id, known)
    }
    if (missing.length === 0) return found
    const { credentials, lease } = this.#options
    const rows = await untilStored(
      () => credentials.get(lease.instanceId, type, missing),
      this.#closed.signal,
      STORE_PATIENCE_MS,
    )
    for (const id of missing) {
      const row = rows.get(id)
      const key = `${type}/${id}`
      // What was written meanwhile is newer than what was read.
      const value = this.#known(key) ?? (row ? decode(row) : null)
      if (CACHED.has(type) && !this.#cache.has(key)) this.#cache.set(key, value)
      if (value !== null) found.set(id, value)
    }
    return found
  }

  /** Visible at once; resolves when durable. Null deletes. A failure also ends the socket. */
  write(rows: readonly Row[]): Promise<void> {
    for (const row of rows) {
      const key = `${row.type}/${row.id}`
      this.#gathered.set(key, row)
      if (CACHED.has(row.type)) this.#cache.set(key, withOwnBytes(row.value))
    }
    return this.settled()
  }

  /** Notes that `creds` changed; they are stored with the next commit. */
  touchCreds(): void {
    // Before the phone's signature is there, a login with these credentials would be refused.
    this.#credsChanged = this.creds.account !== undefined
  }

  /** Resolves when all that was changed so far is durable. */
  settled(): Promise<void> {
    if (this.#gathered.size === 0 && !this.#credsChanged) return this.#next ?? this.#current
    this.#next ??= this.#current.then(async () => {
      // Once nothing else is ready to run: the sessions of all devices of a message are then gathered.
      await new Promise<void>(resolve => process.nextTick(resolve))
      this.#next = null
      this.#current = this.#commit()
      return this.#current
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#next.then(resolve, reject)
    // Not everybody waits; a failure has ended the socket already.
    promise.catch(() => undefined)
    return promise
  }

  /** No more patience with the store: what waits for it fails. */
  close(): void {
    this.#closed.abort()
  }

  /** Undefined: only the store knows. Null: there is none. */
  #known(key: string): unknown {
    const row = this.#gathered.get(key) ?? this.#committing.get(key)
    return row ? row.value : this.#cache.get(key)
  }

  async #commit(): Promise<void> {
    // Over a gap nothing may be stored: the next socket starts from the last whole state.
    if (this.#broken) throw new BrokenKeys()
    this.#committing = this.#gathered
    this.#gathered = new Map()
    const changes: Row[] = [...this.#committing.values()]
    if (this.#credsChanged) changes.push({ ...CREDS, value: this.creds })
    this.#credsChanged = false
    const rows = changes.map(({ type, id, value }) => ({ type, id, value: value === null ? null : encode(value) }))
    const { credentials, lease, onBroken } = this.#options
    try {
      await untilStored(() => credentials.set(lease, rows), this.#closed.signal, STORE_PATIENCE_MS)
    } catch (error) {
      this.#broken = true
      onBroken(error)
      throw error
    }
    this.#committing = new Map()
  }
}

/** A change of the keys could not be stored: none after it may be. */
class BrokenKeys extends Error {
  override readonly name = 'BrokenKeys'
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
  return json?.type === 'Buffer' && typeof json.data === 'string' ? ownBytes(Buffer.from(json.data, 'base64')) : value
}

/** Of what is cached, identity keys and sender keys are bytes, and a contact's token holds some. */
function withOwnBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return ownBytes(value)
  const { token } = (value ?? {}) as { token?: unknown }
  return token instanceof Uint8Array ? { ...(value as object), token: ownBytes(token) } : value
}

/** What Baileys expects of a value read: copies of what it changes in place, a message where it wants one. */
function revive(type: RowType, value: unknown): unknown {
  if (type === 'sender-key-memory') return { ...(value as object) }
  if (type === 'device-list') return [...(value as string[])]
  if (type === 'app-state-sync-key') return proto.Message.AppStateSyncKeyData.fromObject(value as object)
  return value
}
