import { Account } from './account.ts'
import { isDerivedNumber, isNumber, numberOfKey } from './addresses.ts'
import { BoundedMap } from './bounded-map.ts'
import { hasMeaning } from './contacts/behaviour.ts'
import { MediaFiles } from './media/media-files.ts'
import { MediaHost } from './media/media-host.ts'
import { Presences } from './profiles/presences.ts'
import { RefusedQueries } from './queries/refused-queries.ts'
import { Scenario } from './scenario/scenario.ts'
import { Agenda } from './server/agenda.ts'
import { CodeRequests } from './server/code-requests.ts'
import { EventLoopBudget } from './thread/event-loop-budget.ts'
import { type Call, type NetworkStorage, SimulatorError, type SimulatorOptions } from './types.ts'
import { createServerIdentity, type ServerIdentity } from './wire/certificate.ts'
import type { TlsCertificate } from './wire/tls-certificate.ts'

/** A client that waits to be linked, as the linking phone sees it. */
export interface WaitingClient {
  /** @throws SimulatorError if the client does not complete the exchange */
  link(account: Account, advSecret: Buffer): Promise<void>
  linkByCode(account: Account, code: string): Promise<void>
  /** True if this client shows the given keys in its QR code. */
  shows(noiseKey: Buffer, identity: Buffer): boolean
}

/** The size of all media files together, above which the oldest are erased. */
const MAX_MEDIA_BYTES = 2 ** 30
const MAX_CALLS = 1_000
/** How long an account may take to be opened after the start of the network, or again after it was closed. */
const OPENS_WITHIN_MS = 60_000
const MAX_CLOSED = 1_000

export const DEFAULT_TIMINGS = { deliveredAfterMs: 200, readAfterMs: 600, answeredAfterMs: 300 }

/** The state shared by all connections: the accounts, and the clients that wait to be linked. */
export class Network {
  readonly identity: ServerIdentity = createServerIdentity()
  readonly agenda = new Agenda()
  readonly scenario = new Scenario(this.agenda)
  readonly budget = new EventLoopBudget()
  readonly media: MediaHost
  readonly presences = new Presences()
  /** The latest calls, by ID. */
  readonly calls = new BoundedMap<string, Call>(MAX_CALLS)
  /** Milliseconds that a stanza takes in one direction. */
  latencyMs: number
  readonly timings: typeof DEFAULT_TIMINGS
  readonly claimedPreKeys: number
  readonly syncsAfterLinking: boolean
  readonly readsForClients: boolean
  readonly log: (line: string) => void
  readonly refusedQueries: RefusedQueries
  /** Waiting clients, by the reference in their QR code. */
  readonly qrRefs = new Map<string, WaitingClient>()
  readonly codeRequests = new CodeRequests<WaitingClient>()
  readonly #removed = new Set<string>()
  readonly #storage: NetworkStorage | null
  readonly #accounts = new Map<string, Account>()
  readonly #byPhone = new Map<string, Account>()
  readonly #opening = new Map<string, Promise<Account>>()
  readonly #leaving = new Map<string, Promise<void>>()
  readonly #startedAt = performance.now()
  /** When accounts were closed, by number. */
  readonly #closedAt = new BoundedMap<string, number>(MAX_CLOSED)
  readonly #createdGroups = new Set<string>()
  #logins = 0
  #groupChanges: Promise<unknown> = Promise.resolve()

  constructor(options: SimulatorOptions, certificate: TlsCertificate) {
    this.timings = { ...DEFAULT_TIMINGS, ...options.timings }
    this.latencyMs = options.latencyMs ?? 0
    this.claimedPreKeys = options.claimedPreKeys ?? 0
    this.syncsAfterLinking = options.syncsAfterLinking ?? false
    this.readsForClients = options.readsForClients ?? true
    this.#storage = options.storage ?? null
    this.log = options.log ?? (() => undefined)
    this.refusedQueries = new RefusedQueries(this.log)
    const files = new MediaFiles(options.mediaFolder ?? null, MAX_MEDIA_BYTES)
    this.media = new MediaHost(files, this.scenario, certificate, this.log)
  }

  nextLogin(): number {
    return ++this.#logins
  }

  accounts(): Account[] {
    return [...this.#accounts.values()]
  }

  findAccount(phone: string): Account | null {
    return this.#byPhone.get(phone) ?? null
  }

  /** @throws SimulatorError `unknown_account` */
  getAccount(phone: string): Account {
    const account = this.findAccount(phone)
    if (!account) throw new SimulatorError('unknown_account', `no account has the number ${phone}`)
    return account
  }

  openAccount(key: string): Promise<Account> {
    const open = this.#accounts.get(key)
    if (open) return Promise.resolve(open)
    const alreadyOpening = this.#opening.get(key)
    if (alreadyOpening) return alreadyOpening
    const opening = this.#open(key).finally(() => this.#opening.delete(key))
    this.#opening.set(key, opening)
    return opening
  }

  /**
   * Removes the account from the network, then runs `leave`. The account cannot be opened again until `leave` has
   * finished.
   */
  async takeOut(key: string, leave: (account: Account) => Promise<void>): Promise<void> {
    const opening = this.#opening.get(key)
    if (opening) await opening.catch(() => undefined)
    const account = this.#accounts.get(key)
    if (!account) return this.#leaving.get(key)
    this.#accounts.delete(key)
    this.#byPhone.delete(account.phone)
    this.#closedAt.set(account.phone, performance.now())
    const leaving = leave(account).finally(() => this.#leaving.delete(key))
    this.#leaving.set(key, leaving)
    return leaving
  }

  /** Runs changes of groups one after the other, because accounts share groups. */
  changeGroup<T>(change: () => Promise<T>): Promise<T> {
    const changed = this.#groupChanges.then(change)
    this.#groupChanges = changed.catch(() => undefined)
    return changed
  }

  /** Records that no account has this number any more, and forgets its presences and calls. */
  markRemoved(phone: string): void {
    this.#removed.add(phone)
    this.presences.forget(phone)
    for (const [id, { from, to }] of this.calls) if (from === phone || to === phone) this.calls.delete(id)
  }

  /**
   * True if a number without an open account may still belong to one: its scope may be in the storage, to be opened
   * later or by another network.
   */
  mayOpen(phone: string): boolean {
    return this.#storage !== null && !this.findAccount(phone) && !this.#removed.has(phone)
  }

  /**
   * Whether the number belongs to an account that is not open here, so that no phone of this network may read its messages:
   * `brief` if the account will probably be opened soon, `lasting` if it runs in another network or was removed. Null for
   * every other number.
   */
  absenceOf(phone: string): 'brief' | 'lasting' | null {
    if (!this.#storage || !isDerivedNumber(phone) || this.findAccount(phone)) return null
    const since = this.#closedAt.get(phone) ?? this.#startedAt
    return !this.#removed.has(phone) && performance.now() - since < OPENS_WITHIN_MS ? 'brief' : 'lasting'
  }

  /** The account of a scope that is not open. Null if the scope holds none. */
  load(key: string): Promise<Account | null> {
    return Account.load(key, this.#storage)
  }

  async #open(key: string): Promise<Account> {
    if (key === '') throw new SimulatorError('invalid_argument', 'an account key may not be empty')
    await this.#leaving.get(key)?.catch(() => undefined)
    const account = (await this.load(key)) ?? (await this.#create(key))
    if (this.#byPhone.has(account.phone)) {
      throw new SimulatorError('invalid_argument', `another account has the number ${account.phone}`)
    }
    this.#removed.delete(account.phone)
    this.#shareGroups(account)
    this.#accounts.set(key, account)
    this.#byPhone.set(account.phone, account)
    return account
  }

  #shareGroups(account: Account): void {
    account.networkGroups = this.#createdGroups
    for (const [id, { isDefault }] of account.createdGroups) if (!isDefault) this.#createdGroups.add(id)
  }

  async #create(key: string): Promise<Account> {
    const phone = numberOfKey(key)
    if (!isNumber(phone) || hasMeaning(phone)) {
      throw new SimulatorError('invalid_argument', `the number ${phone} cannot be an account's`)
    }
    return Account.create(key, phone, this.#storage)
  }
}
