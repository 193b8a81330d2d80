import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { ConnectionCause, StoredConnection } from '../../domain/connection.ts'
import { Batcher } from '../../kit/batcher.ts'
import { waitAtMost } from '../../kit/deadline.ts'
import { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import type { ConnectionRecord } from '../../store/connections/connections.ts'
import { LeaseLost, StoreUnavailable } from '../../store/errors.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import { numberOf } from '../baileys/addresses.ts'
import { createLibraryCaches } from '../baileys/library-caches.ts'
import { Link, LinkClosed } from '../baileys/link.ts'
import type { LinkEnd } from '../baileys/link-end.ts'
import { CredentialStore } from '../baileys/signal/credential-store.ts'
import { DeviceCache } from '../baileys/signal/device-cache.ts'
import { createRetryBudgets } from '../baileys/signal/retry-requests.ts'
import type { Network } from '../baileys/socket-options.ts'
import { Recorder } from '../receiving/recorder.ts'
import { GroupDirectory } from '../sending/group-directory.ts'
import { Sender } from '../sending/sender.ts'
import { type NextStep, nextStep } from './after-close.ts'
import { Codes } from './codes.ts'
import { ConnectionPacing } from './connection-pacing.ts'
import { HealthLog } from './health-log.ts'
import { Pause } from './pause.ts'
import { RestrictionWatch } from './restriction-watch.ts'
import { NO_CODES, Status } from './status.ts'
import { WindingUp } from './winding-up.ts'

/*
 * How a connection lives. At every moment it is in one of these modes; `after-close.ts` says what each close code does.
 *
 * - resting: no socket. Left when the stored goal asks for something else.
 * - linking: a socket without credentials shows QR codes (or has a pairing code). A phone that links us leads to
 *   logging in, over a new socket (close code 515), once the credentials are stored. When the codes run out it rests:
 *   `unlinked`. Every new wish to connect starts it again from nothing.
 * - logging in: a socket with credentials that is not open yet. Leads to connected, pausing or resting.
 * - connected: the sender has the link. A cut leads to pausing.
 * - pausing: waits for the next socket; a new wish to connect ends the pause. `reconnecting` to the world.
 * - winding up: logged out by us, by the phone, or deleted. Credentials go, the queue fails, then it rests. It is
 *   told by the goal `logged_out`, so that a kill in between is taken up again.
 *
 * There is at most one socket: a link is closed, and its credentials are stored, before the next one is made.
 */

/** Behind the hints, which may be lost. */
const LOOK_EVERY_MS = 10_000
/** A connection that lasted this long ends the count of failures. */
const LASTED_MS = 60_000
const LOGOUT_WITHIN_MS = 8_000
/** How long a logout waits for acknowledgements under way. What comes later is not known: `unconfirmed`. */
const ACKNOWLEDGED_WITHIN_MS = 3_000
/** A store that does not say in this time whether an instance was deleted does not keep a lost socket open. */
const ASK_WITHIN_MS = 500
const STOP_WITHIN_MS = 2_500
/** Outcomes and receipts of a busy connection share a commit. */
const GATHER_MS = 5
/** WhatsApp's code for a message to somebody new that it does not let the account write to. */
const RESTRICTED = 463
/** States in which no login with the credentials that are stored, if there are any, was ever recorded. */
const NEVER_CONNECTED: ReadonlySet<StoredConnection['state']> = new Set([
  'unlinked',
  'linking',
  'connecting',
  'logged_out',
])
const ASKING = { cause: 'asking_for_code', reason: 'Asking WhatsApp for a code.' } as const

export interface ConnectionOptions {
  lease: Lease
  store: Pick<Store, 'connections' | 'messages' | 'events' | 'credentials' | 'numbers' | 'hints'>
  /** `none`: it cannot be connected on this node at all, for a reason that the operator can mend. */
  network: Network | { kind: 'none'; cause: ConnectionCause; reason: string }
  settings: {
    /** Of WhatsApp Web; default: the one that ships with the driver. */
    version?: [number, number, number]
    messageTtlMs: number
    ackTimeoutMs?: number
    /** How long WhatsApp is given to answer a query. Default: 15 s. */
    queryTimeoutMs?: number
    /** How often WhatsApp is asked for a sign of life; without one for 5 s more the socket ends. Default: 25 s. */
    keepAliveMs?: number
  }
  /** Whether the lease cannot have gone to another node unnoticed; asked before each frame. By default always. */
  mayAct?: () => boolean
  /** Shared by the connections of a node; by default this one's own. */
  eventLoopBudget?: EventLoopBudget
  /** Likewise. */
  pacing?: ConnectionPacing
  logger: Logger
  now?: () => number
  /** A write was refused by the fence: whoever started the connection must stop it. Called once at most. */
  onLeaseLost(): void
}

/** One instance's live link to WhatsApp, for as long as the lease lasts. */
export interface Connection {
  /** Converges on the stored goal, and keeps looking whether it changed. */
  start(): void
  /** It shows a code, or logs in for the first time after a phone has taken one. */
  readonly isLinking: boolean
  /**
   * Puts the connection down within 3 s: buffers are given out, sends in flight are settled, `reconnecting` is recorded.
   * `logOut`: the instance was deleted; WhatsApp is logged out with what is in memory, and nothing is written.
   */
  stop(options?: { logOut?: boolean }): Promise<void>
}

export function createConnection(options: ConnectionOptions): Connection {
  return new WhatsappConnection(options)
}

class WhatsappConnection implements Connection {
  readonly #options: ConnectionOptions
  readonly #now: () => number
  readonly #logger: Logger
  readonly #instanceId: string
  readonly #status: Status
  readonly #windingUp: WindingUp
  readonly #batcher = new Batcher(GATHER_MS)
  /** Of the account that is linked: the next one gets a sender of its own. */
  #sender: Sender
  readonly #recorder: Recorder
  readonly #groups: GroupDirectory
  readonly #devices: DeviceCache
  readonly #restriction: RestrictionWatch
  readonly #health: HealthLog
  readonly #caches = createLibraryCaches()
  readonly #retryBudgets = createRetryBudgets(() => performance.now())
  readonly #pacing: ConnectionPacing
  readonly #pause = new Pause()
  readonly #stopped = new AbortController()
  /** Everything that changes the mode runs here, one step at a time. */
  #steps: Promise<void> = Promise.resolve()
  #link: Link | null = null
  #credentials: CredentialStore | null = null
  /** The wish that is being fulfilled; null before the first look. */
  #goalVersion: number | null = null
  #pairingPhone: string | null = null
  /** Set while a socket without credentials is open. */
  #codes: Codes | null = null
  /** Linked, and never connected since. */
  #firstLogin = false
  #openedAt: number | null = null
  #poll: NodeJS.Timeout | undefined
  #unsubscribe: () => void = () => undefined
  #leaseLost = false

  constructor(options: ConnectionOptions) {
    const { lease, store, logger } = options
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#logger = logger
    this.#instanceId = lease.instanceId
    this.#pacing = options.pacing ?? new ConnectionPacing()
    const shared = { lease, logger, now: this.#now, signal: this.#stopped.signal }
    const simulated = options.network.kind === 'simulated'
    this.#status = new Status({ ...shared, connections: store.connections, simulated })
    this.#windingUp = new WindingUp({ ...shared, store, status: this.#status })
    this.#groups = new GroupDirectory()
    this.#devices = new DeviceCache(this.#now)
    const onFailed = (error: unknown) => this.#failed(error)
    this.#recorder = new Recorder({ lease, store, batcher: this.#batcher, logger, now: this.#now, onFailed })
    this.#health = new HealthLog({ lease, connections: store.connections, now: this.#now, onFailed })
    this.#restriction = new RestrictionWatch({
      now: this.#now,
      askWhatsapp: async () => {
        if (this.#link?.isOpen) await this.#link.askRestriction()
      },
      onChanged: () => {
        this.#sender.restrictionChanged()
        this.#step(() => this.#recordRestriction())
      },
    })
    this.#sender = this.#createSender()
  }

  start(): void {
    this.#unsubscribe = this.#options.store.hints.on('goal', () => this.#step(() => this.#look()), this.#instanceId)
    this.#poll = setInterval(() => this.#step(() => this.#look()), LOOK_EVERY_MS)
    this.#sender.start()
    this.#health.start()
    this.#step(() => this.#look())
  }

  get isLinking(): boolean {
    return this.#status.isLinking
  }

  async stop({ logOut = false }: { logOut?: boolean } = {}): Promise<void> {
    this.#unsubscribe()
    clearInterval(this.#poll)
    this.#pause.end()
    this.#stopped.abort()
    const link = this.#link
    if (logOut) await waitAtMost(LOGOUT_WITHIN_MS, link?.logOut())
    const wasConnected = link?.isOpen === true
    await waitAtMost(STOP_WITHIN_MS, this.#putDown(wasConnected && !logOut && !this.#leaseLost))
  }

  async #putDown(recordReconnecting: boolean): Promise<void> {
    await this.#credentials?.settled().catch(() => undefined)
    this.#closeLink()
    this.#restriction.stop()
    await Promise.all([this.#sender.stop(), this.#recorder.drained(), this.#steps, this.#health.stop()])
    this.#closeLink()
    if (!recordReconnecting) return
    const reason = 'Pombal is being stopped; it connects again when it starts.'
    const { store, lease } = this.#options
    const change = { state: 'reconnecting', cause: 'stopping', reason } as const
    await store.connections.record(lease, change, this.#now()).catch(() => undefined)
  }

  /** Runs a step after the ones before it; a step that fails is logged and, where it matters, repeated by the poll. */
  #step(work: () => Promise<void>): void {
    this.#steps = this.#steps.then(async () => {
      if (this.#stopped.signal.aborted || this.#leaseLost) return
      await work().catch(error => this.#failed(error))
    })
  }

  // ── The goal ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #look(): Promise<void> {
    const record = await this.#status.find()
    if (!record) return
    this.#restriction.load(record.restriction)
    if (record.deleted) return this.#windUpDeleted()
    if (record.goalVersion === this.#goalVersion) {
      // A step failed in a way that nobody foresaw, and left nothing that would go on.
      if (record.goal === 'online' && !this.#link && !this.#pause.isOn) await this.#open()
      if (record.state === 'logged_out') await this.#windingUp.failLeftOver()
      return
    }
    this.#goalVersion = record.goalVersion
    try {
      await this.#pursue(record)
    } catch (error) {
      // Taken up again at the next look.
      this.#goalVersion = null
      throw error
    }
  }

  async #pursue(record: ConnectionRecord): Promise<void> {
    const { goal, state } = record
    this.#firstLogin ||= NEVER_CONNECTED.has(state)
    if (goal === 'online') await this.#goOnline(record)
    else if (goal === 'logged_out') await this.#logOut(state)
    else if (!this.#link && (state === 'linking' || state === 'connecting')) {
      const reason = 'Linking was interrupted. Connect again.'
      await this.#status.record({ ...NO_CODES, state: 'unlinked', cause: 'linking_interrupted', reason })
    }
  }

  async #goOnline(record: ConnectionRecord): Promise<void> {
    // What works is left alone; a socket that shows codes starts clean.
    if (this.#link?.isOpen) return
    this.#closeLink()
    this.#pause.end()
    this.#pause.forget()
    this.#pairingPhone = record.pairingPhone
    // Killed while the queue of the number before was failing.
    if (record.state === 'logged_out') await this.#windingUp.finishLogout()
    const { network } = this.#options
    // The goal stays: it is taken up again when the node is started otherwise.
    if (network.kind === 'none') {
      const { cause, reason } = network
      await this.#status.record({ ...NO_CODES, state: 'stopped', cause, reason })
    } else await this.#open()
  }

  async #logOut(state: StoredConnection['state']): Promise<void> {
    this.#pause.end()
    if ((state === 'unlinked' || state === 'linking') && !(await this.#isLinked())) {
      this.#closeLink()
      return this.#rest({ kind: 'rest', state: 'unlinked', cause: 'never_linked', reason: 'No number is linked.' })
    }
    const link = this.#link?.isOpen ? this.#link : await this.#openForLogout()
    // Messages that are written already get their acknowledgements; no other is started.
    this.#sender.detach()
    await waitAtMost(ACKNOWLEDGED_WITHIN_MS, this.#sender.drained())
    await waitAtMost(LOGOUT_WITHIN_MS, link?.logOut())
    await this.#windUp({ cause: 'logged_out_as_asked', reason: 'Logged out, as asked for.' })
  }

  /** A phone may have scanned the code in this instant. */
  async #isLinked(): Promise<boolean> {
    await this.#credentials?.settled()
    const { lease, store } = this.#options
    return this.#stored(() => CredentialStore.exist(store.credentials, lease.instanceId))
  }

  /** An open link to say goodbye through; null when there is none in time: then the phone lists us until it notices. */
  async #openForLogout(): Promise<Link | null> {
    this.#closeLink()
    await this.#open({ onlyWithCredentials: true })
    const link = this.#link
    if (!link) return null
    const deadline = performance.now() + LOGOUT_WITHIN_MS
    while (!link.isOpen && !link.closed.aborted && performance.now() < deadline) {
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    return link.isOpen ? link : null
  }

  // ── Sockets ───────────────────────────────────────────────────────────────────────────────────────────────────

  async #open({ onlyWithCredentials = false } = {}): Promise<void> {
    const { lease, store, network } = this.#options
    if (network.kind === 'none') return
    await this.#pacing.take(this.#stopped.signal)
    if (this.#stopped.signal.aborted) return
    const options = {
      lease,
      credentials: store.credentials,
      onBroken: (error: unknown) => this.#keysRefused(credentials, error),
    }
    const found = await this.#stored(() => CredentialStore.find(options))
    if (!found && onlyWithCredentials) return
    if (!found) await this.#windingUp.failLeftOver()
    const credentials: CredentialStore = found ?? CredentialStore.create(options)
    this.#credentials = credentials
    this.#codes = found ? null : this.#newCodes(network)
    // A code that is still on show is of a socket that is gone.
    const told = found ? this.#loggingIn() : ASKING
    await this.#status.record({ ...NO_CODES, ...told })
    if (this.#stopped.signal.aborted) return
    this.#link = this.#createLink(network, credentials)
  }

  #createLink(network: Network, credentials: CredentialStore): Link {
    const { lease, store, settings, mayAct } = this.#options
    const link: Link = new Link({
      network,
      version: settings.version,
      queryTimeoutMs: settings.queryTimeoutMs,
      keepAliveMs: settings.keepAliveMs,
      credentials,
      devices: this.#devices,
      caches: this.#caches,
      retryBudgets: this.#retryBudgets,
      mayAct,
      findGroup: group => this.#groups.get(group),
      findSent: id => store.messages.findSent(lease.instanceId, id),
      logger: this.#logger.child({ instanceId: lease.instanceId }),
      events: {
        qr: text => this.#step(async () => (link === this.#link ? this.#codes?.show(link, text) : undefined)),
        paired: () => this.#step(() => this.#notePaired(link)),
        opened: () => this.#step(() => this.#noteOpened(link)),
        closed: end => this.#step(() => this.#noteClosed(link, end)),
        acknowledged: ack => {
          // Before anybody else is written to.
          if (ack.error === RESTRICTED) this.#restriction.refused()
          this.#sender.acknowledged(ack)
        },
        receipt: async receipt => {
          this.#sender.noteReceipt(await this.#recorder.recordReceipt(receipt, link.closed))
        },
        received: async message => {
          await this.#recorder.recordIncoming(message, link.closed)
          this.#sender.noteContact(message.from)
        },
        frame: () => this.#health.frame(),
        undecryptable: () => this.#health.undecryptable(),
        restriction: notice => this.#restriction.told(notice),
        groupChanged: group => this.#groups.forget(group),
      },
    })
    return link
  }

  #createSender(): Sender {
    const { lease, store, settings, logger, eventLoopBudget = new EventLoopBudget() } = this.#options
    return new Sender({
      lease,
      store,
      groups: this.#groups,
      batcher: this.#batcher,
      eventLoopBudget,
      messageTtlMs: settings.messageTtlMs,
      ackTimeoutMs: settings.ackTimeoutMs,
      isRestricted: () => this.#restriction.isInForce,
      onAcknowledged: latencyMs => this.#health.acknowledged(latencyMs),
      logger,
      now: this.#now,
      onFailed: error => this.#failed(error),
    })
  }

  #newCodes(network: Network): Codes {
    return new Codes({
      instanceId: this.#instanceId,
      network,
      pairingPhone: this.#pairingPhone,
      status: this.#status,
      logger: this.#logger,
      now: this.#now,
    })
  }

  /** Memory is ahead of the store: nothing more may be encrypted or acknowledged with these keys. */
  #keysRefused(credentials: CredentialStore, error: unknown): void {
    if (credentials !== this.#credentials) return
    this.#failed(error)
    if (error instanceof LeaseLost) return
    this.#link?.close()
    this.#step(async () => {
      if (credentials === this.#credentials)
        await this.#reopenAfter('keys_not_stored', 'The keys of the connection could not be stored.')
    })
  }

  #loggingIn(): Pick<StoredConnection, 'state' | 'cause' | 'reason'> {
    return this.#firstLogin
      ? { state: 'connecting', cause: 'first_login', reason: 'Linked; logging in for the first time.' }
      : { state: 'reconnecting', cause: 'logging_in', reason: 'Connecting to WhatsApp.' }
  }

  #closeLink(): void {
    this.#sender.detach()
    this.#link?.close()
    this.#credentials?.close()
    this.#link = null
    this.#credentials = null
    this.#openedAt = null
  }

  async #notePaired(link: Link): Promise<void> {
    if (link !== this.#link) return
    this.#firstLogin = true
    await this.#status.record({ ...NO_CODES, ...this.#loggingIn() })
  }

  async #noteOpened(link: Link): Promise<void> {
    if (link !== this.#link || !link.isOpen) return
    // Nothing was accepted for this number before it is recorded as connected: what is queued was for the one before.
    if (this.#firstLogin) await this.#windingUp.failLeftOver()
    if (!link.isOpen) return
    this.#openedAt = performance.now()
    this.#firstLogin = false
    const phone = numberOf(link.self.id) ?? null
    const restriction = { ...this.#restriction.describe(), restriction: this.#restriction.restriction }
    await this.#status.record({ ...NO_CODES, state: 'connected', phone, ...restriction })
    this.#sender.attach(link)
    this.#restriction.ask()
  }

  /** Killed before: the next refusal teaches it again. */
  async #recordRestriction(): Promise<void> {
    const told = this.#openedAt !== null && this.#link?.isOpen ? this.#restriction.describe() : {}
    const { restriction } = this.#restriction
    await this.#status.record({ ...told, restriction })
    this.#logger.info({ instanceId: this.#instanceId, restriction }, 'connection.restriction')
  }

  async #noteClosed(link: Link, end: LinkEnd): Promise<void> {
    if (link !== this.#link) return
    const { network } = this.#options
    const lasted = this.#openedAt !== null && performance.now() - this.#openedAt > LASTED_MS
    const linked = this.#credentials?.creds.account !== undefined
    // Before the next socket reads them (515 follows the linking at once).
    await this.#credentials?.settled()
    this.#closeLink()
    if (lasted) this.#pause.forget()
    this.#logger.info({ instanceId: this.#instanceId, code: end.code }, 'connection.closed')
    this.#health.closed(end.code)
    const next = nextStep(end, {
      linked,
      codesRanOut: this.#codes?.ranOut === true,
      linksItself: network.kind === 'simulated' && network.linkBy !== undefined,
      ...this.#pause.inARow,
    })
    if (next.kind === 'logged_out')
      return this.#windUp({ cause: 'logged_out_by_phone', reason: 'Logged out from the phone.' })
    if (next.kind === 'rest') return this.#rest(next)
    if (next.kind === 'pause') return this.#openAfterPause(next)
    this.#pause.noteRestart()
    await this.#open()
  }

  async #reopenAfter(cause: ConnectionCause, reason: string): Promise<void> {
    this.#closeLink()
    await this.#openAfterPause({ state: 'reconnecting', cause, reason, slow: false })
  }

  async #openAfterPause(next: Omit<Extract<NextStep, { kind: 'pause' }>, 'kind'>): Promise<void> {
    const { state, cause, reason, slow } = next
    const pauseMs = this.#pause.begin(slow, () => this.#step(async () => (this.#link ? undefined : this.#open())))
    const when = `Trying again in ${Math.max(1, Math.round(pauseMs / 1_000))} s.`
    const told = state === 'reconnecting' ? this.#loggingIn().state : state
    const retryAt = this.#now() + Math.round(pauseMs)
    await this.#status.record({ ...NO_CODES, retryAt, state: told, cause, reason: `${reason} ${when}` })
  }

  // ── Ends ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Nothing more is tried until somebody asks for it. */
  async #rest({ state, cause, reason }: Extract<NextStep, { kind: 'rest' }>): Promise<void> {
    await this.#status.record({ ...NO_CODES, state, cause, reason })
    await this.#settleGoal()
  }

  async #windUp(why: Pick<StoredConnection, 'cause' | 'reason'>): Promise<void> {
    this.#closeLink()
    this.#devices.flushAll()
    this.#groups.flushAll()
    this.#restriction.clear()
    await this.#replaceSender()
    await this.#windingUp.logOut(why, this.#goalVersion)
    await this.#settleGoal()
  }

  /** What is in memory of the queue was accepted for the number that is gone. */
  async #replaceSender(): Promise<void> {
    await this.#sender.drained()
    await this.#sender.stop()
    this.#sender = this.#createSender()
    if (!this.#stopped.signal.aborted) this.#sender.start()
  }

  /** The rows of its credentials are gone already; what it was in memory, `stop({ logOut })` takes care of. */
  async #windUpDeleted(): Promise<void> {
    if (this.#link) return this.#leaseGone()
    this.#pause.end()
    await this.#windingUp.failQueue('instance_deleted')
  }

  /** The goal becomes `idle`, unless somebody asked for something new in the meantime. */
  async #settleGoal(): Promise<void> {
    await this.#status.settleGoal('idle', this.#goalVersion)
    this.#step(() => this.#look())
  }

  // ── Trouble ───────────────────────────────────────────────────────────────────────────────────────────────────

  #stored<T>(work: () => Promise<T>): Promise<T> {
    return untilStored(work, this.#stopped.signal)
  }

  #failed(error: unknown): void {
    if (error instanceof LeaseLost) {
      this.#leaseGone()
      return
    }
    // The link's own end says what follows.
    if (error instanceof LinkClosed) return
    const level = error instanceof StoreUnavailable ? 'warn' : 'error'
    this.#logger[level]({ err: error, instanceId: this.#instanceId }, 'connection.step_failed')
  }

  /**
   * Nothing that needs a write gets through any more: no send, no receipt. The socket ends at once; if the instance was
   * deleted, WhatsApp is told first.
   */
  #leaseGone(): void {
    if (this.#leaseLost) return
    this.#leaseLost = true
    this.#sender.detach()
    if (!this.#stopped.signal.aborted) this.#options.onLeaseLost()
    const link = this.#link
    if (!link) return
    const found = this.#options.store.connections.find(this.#instanceId).then(
      record => record === null || record.deleted,
      () => false,
    )
    Promise.race([found, sleep(ASK_WITHIN_MS, false, { ref: false })])
      .then(deleted => (deleted ? waitAtMost(LOGOUT_WITHIN_MS, link.logOut()) : undefined))
      .finally(() => link.close())
  }
}
