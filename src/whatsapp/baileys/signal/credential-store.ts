import {
  type AuthenticationCreds,
  BufferJSON,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
  type SignalKeyStore,
} from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { ownBytes } from '../../../kit/own-bytes.ts'
import type { Credentials } from '../../../store/credentials/credentials.ts'
import { StoreUnavailable } from '../../../store/errors.ts'
import type { Lease } from '../../../store/leases/leases.ts'
import { untilStored } from '../../../store/until-stored.ts'
import { outsideLibrary } from '../library-scope.ts'

/** Baileys' types of Signal keys, and our own. */
type RowType = keyof SignalDataTypeMap | 'creds' | 'devices' | 'journal' | 'journal-large'

/** The one row that holds an account's credentials. */
const CREDS = { type: 'creds', id: 'creds' } as const

/** Types that are read at every send. The others are read rarely, and pre-keys alone are 812 rows per instance. */
const CACHED: ReadonlySet<string> = new Set<RowType>([
  'session',
  'sender-key',
  'sender-key-memory',
  'lid-mapping',
  'device-list',
  'devices',
  'tctoken',
  'identity-key',
])
const CACHED_ENTRIES = 4_000

/** Longer than a restart of the database. After this the socket ends, because its state is not stored. */
const STORE_WITHIN_MS = 10_000

interface CredentialStoreOptions {
  lease: Lease
  credentials: Credentials
  /**
   * A write failed for good, or the store could not be read. The socket must end immediately: after a failed write,
   * memory is ahead of the store; after a failed read, Baileys would acknowledge a message that it could not decrypt.
   */
  onBroken(error: unknown): void
}

interface Row {
  type: RowType
  id: string
  value: unknown
}

/**
 * The credentials and Signal keys of one socket: a cache in front of the store. It is discarded with the socket, and the
 * next socket starts from the stored state. Changes are visible immediately and are committed in order, one commit at a
 * time. A commit contains all changes since the previous commit, including changed credentials, because pre-keys and
 * their counter must stay consistent. Callers wait for `settled` before they send anything that depends on a change.
 */
export class CredentialStore {
  readonly creds: AuthenticationCreds
  readonly #options: CredentialStoreOptions
  readonly #cache = new BoundedMap<string, unknown>(CACHED_ENTRIES)
  readonly #closed = new AbortController()
  /** Changes that no commit contains yet, by type and ID. */
  #pending = new Map<string, Row>()
  #committing = new Map<string, Row>()
  #credsChanged = false
  /** The running commit. */
  #current: Promise<void> = Promise.resolve()
  /** The next commit, which contains the pending changes. */
  #next: Promise<void> | null = null
  #broken = false

  private constructor(options: CredentialStoreOptions, creds: AuthenticationCreds) {
    this.#options = outsideLibrary({ ...options, credentials: outsideLibrary(options.credentials) })
    this.creds = creds
  }

  /** Null if the instance is not linked. */
  static async find(options: CredentialStoreOptions): Promise<CredentialStore | null> {
    const rows = await options.credentials.get(options.lease.instanceId, CREDS.type, [CREDS.id])
    const row = rows.get(CREDS.id)
    return row ? new CredentialStore(options, decode(row) as AuthenticationCreds) : null
  }

  static async exist(credentials: Credentials, instanceId: string): Promise<boolean> {
    return (await credentials.get(instanceId, CREDS.type, [CREDS.id])).size > 0
  }

  /** New credentials. They are stored once a phone has confirmed them: an abandoned attempt leaves no rows. */
  static create(options: CredentialStoreOptions): CredentialStore {
    return new CredentialStore(options, initAuthCreds())
  }

  readonly keys: SignalKeyStore = {
    get: async (type, ids) => {
      // Some IDs come from WhatsApp, so an inherited property must not look like a value.
      const found: { [id: string]: SignalDataTypeMap[typeof type] } = Object.create(null)
      for (const [id, value] of await this.read(type, ids)) found[id] = revive(type, value) as (typeof found)[string]
      return found
    },
    set: async (data: SignalDataSet) => {
      const rows: Row[] = []
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values)) rows.push({ type: type as RowType, id, value: value ?? null })
      }
      const written = this.write(rows)
      // Baileys uploads the public halves next. Everything else that depends on a change waits for `settled`.
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
    const rows = await this.#readStored(type, missing)
    for (const id of missing) {
      const row = rows.get(id)
      const key = `${type}/${id}`
      // A value written in the meantime is newer than the stored value.
      const value = this.#known(key) ?? (row ? decode(row) : null)
      if (CACHED.has(type) && !this.#cache.has(key)) this.#cache.set(key, value)
      if (value !== null) found.set(id, value)
    }
    return found
  }

  async #readStored(type: RowType, ids: readonly string[]): Promise<Map<string, Uint8Array>> {
    const { credentials, lease, onBroken } = this.#options
    const { signal } = this.#closed
    try {
      return await untilStored(() => credentials.get(lease.instanceId, type, ids), signal, STORE_WITHIN_MS)
    } catch (error) {
      if (error instanceof StoreUnavailable && !signal.aborted) onBroken(error)
      throw error
    }
  }

  /**
   * Visible immediately. Resolves when durable. A null value deletes the row. A failure also ends the socket. Rejects
   * after `close`.
   */
  write(rows: readonly Row[]): Promise<void> {
    if (this.#closed.signal.aborted) {
      const refused = Promise.reject(new Error('The keys belong to a link that has ended.'))
      // Not every caller waits.
      refused.catch(() => undefined)
      return refused
    }
    for (const row of rows) {
      const key = `${row.type}/${row.id}`
      this.#pending.set(key, row)
      if (CACHED.has(row.type)) this.#cache.set(key, withOwnBytes(row.value))
    }
    return this.settled()
  }

  /** Marks `creds` as changed. They are stored with the next commit. Does nothing after `close`. */
  touchCreds(): void {
    if (this.#closed.signal.aborted) return
    // Without the phone's signature, WhatsApp would refuse a login with these credentials.
    this.#credsChanged = this.creds.account !== undefined
  }

  /** Resolves when all changes so far are durable. Rejects if they could not be stored. */
  settled(): Promise<void> {
    const hasChanges = this.#pending.size > 0 || this.#credsChanged
    if (hasChanges && this.#next === null) {
      this.#next = this.#commitNext()
      // Not every caller waits, and a failure has already ended the socket.
      this.#next.catch(() => undefined)
    }
    return this.#next ?? this.#current
  }

  /** Resolves when the running commit has ended. Another may then begin in the same turn of the event loop. */
  idle(): Promise<void> {
    return this.#current.catch(() => undefined)
  }

  /**
   * Refuses later changes: Baileys continues some work after its socket has ended, such as an upload of pre-keys, and
   * would overwrite what the next link has stored. Also stops retrying: calls that wait for the store fail.
   * @returns resolves when the earlier changes are stored, or could not be stored
   */
  close(): Promise<void> {
    this.#closed.abort()
    return this.settled().catch(() => undefined)
  }

  /** Undefined: not in memory. Null: the row does not exist. */
  #known(key: string): unknown {
    const row = this.#pending.get(key) ?? this.#committing.get(key)
    return row ? row.value : this.#cache.get(key)
  }

  /** Waits for the running commit, and then for all ready callbacks: the sessions of all devices of a message share a commit. */
  async #commitNext(): Promise<void> {
    await this.#current
    await new Promise<void>(resolve => process.nextTick(resolve))
    this.#next = null
    this.#current = this.#commit()
    return this.#current
  }

  async #commit(): Promise<void> {
    // After a lost change nothing may be stored: the next socket starts from the last consistent state.
    if (this.#broken) throw new Error('An earlier change of the keys could not be stored.')
    this.#committing = this.#pending
    this.#pending = new Map()
    const rows: { type: RowType; id: string; value: Uint8Array | null }[] = []
    for (const { type, id, value } of this.#committing.values()) {
      rows.push({ type, id, value: value === null ? null : encode(value) })
    }
    if (this.#credsChanged) rows.push({ ...CREDS, value: encode(this.creds) })
    this.#credsChanged = false
    const { credentials, lease, onBroken } = this.#options
    try {
      await untilStored(() => credentials.set(lease, rows), this.#closed.signal, STORE_WITHIN_MS)
    } catch (error) {
      this.#broken = true
      onBroken(error)
      throw error
    }
    this.#committing = new Map()
  }
}

function encode(value: unknown): Uint8Array {
  return ownBytes(Buffer.from(JSON.stringify(value, BufferJSON.replacer)))
}

function decode(row: Uint8Array): unknown {
  return JSON.parse(Buffer.from(row).toString(), bytesFromJson)
}

function bytesFromJson(_key: string, value: unknown): unknown {
  const json = value as { type?: unknown; data?: unknown } | null
  return json?.type === 'Buffer' && typeof json.data === 'string' ? ownBytes(Buffer.from(json.data, 'base64')) : value
}

/** Copies the bytes of a cached value. Identity keys and sender keys are bytes; a contact's token contains bytes. */
function withOwnBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return ownBytes(value)
  const { token } = (value ?? {}) as { token?: unknown }
  return token instanceof Uint8Array ? { ...(value as object), token: ownBytes(token) } : value
}

/** Copies values that Baileys changes in place, and creates the message object that it expects. */
function revive(type: RowType, value: unknown): unknown {
  if (type === 'sender-key-memory') return { ...(value as object) }
  if (type === 'device-list') return [...(value as string[])]
  if (type === 'app-state-sync-key') return proto.Message.AppStateSyncKeyData.fromObject(value as object)
  return value
}
