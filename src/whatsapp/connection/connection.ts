import type { Logger } from 'pino'
import { isLinked, type StoredConnection } from '../../domain/connection/connection.ts'
import { waitAtMost } from '../../kit/deadline.ts'
import { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import { Turns } from '../../kit/turns.ts'
import { createProxies } from '../../outbound/proxy/proxies.ts'
import type { ConnectionRecord } from '../../store/connections/connections.ts'
import { LeaseLost, StoreUnavailable } from '../../store/errors.ts'
import type { Lease } from '../../store/leases/leases.ts'
import { LinkClosed } from '../baileys/link.ts'
import { DirectoryKeeper } from '../receiving/directory-keeper.ts'
import { Downloads } from '../receiving/downloads.ts'
import { IncomingRecorder } from '../receiving/record.ts'
import { Sender } from '../sending/sender.ts'
import type { OnSent } from '../sending/trace-send.ts'
import type { NextStep } from './after-close.ts'
import { ConnectionPacing } from './connection-pacing.ts'
import type { ConnectionFiles, ConnectionStore } from './connection-parts.ts'
import type { ConnectionNetwork, ConnectionSettings } from './connection-settings.ts'
import { HealthLog } from './health-log.ts'
import { LinkManager } from './link-manager.ts'
import { RestrictionWatch } from './restriction-watch.ts'
import { NEVER_CONNECTED, NO_CODES, Status } from './status.ts'
import { LOGGED_OUT, NOT_CONFIRMED, WindingUp } from './winding-up.ts'

/*
 * A connection is in one of these modes. `after-close.ts` decides what follows each close code.
 *
 * - resting: no socket. Ends when the stored goal asks for another state.
 * - linking: a socket without credentials shows QR codes or a pairing code. When a phone links, the credentials are stored
 *   and the login follows over a new socket (close code 515). When the codes expire, the connection rests as `unlinked`.
 *   A new request to connect starts again with a new code.
 * - logging in: a socket with credentials that is not open yet. Leads to connected, or ends with a close code.
 * - connected: the sender has the link, until the link ends.
 * - pausing: waits before it opens the next socket. Its state is `reconnecting`, or `linking` or `connecting` before
 *   the first login has succeeded. A new request to connect ends the pause.
 * - winding up: the account was logged out by us or by the phone, or the instance was deleted. Erases the credentials, fails
 *   the queue, then rests. The goal `logged_out` (or `relinked`) stays stored until the end, so the next owner resumes
 *   the logout after a kill.
 *
 * There is at most one socket: `LinkManager` closes a link and stores its credentials before it opens the next one.
 */

/** Finds a new goal whose hint was lost. */
const POLL_INTERVAL_MS = 10_000
/** A logout waits this long for acknowledgements. Messages without one fail as `unconfirmed`. */
const LOGOUT_DRAIN_MS = 3_000
const STOP_TIMEOUT_MS = 2_500

export interface ConnectionOptions {
  lease: Lease
  store: ConnectionStore
  network: ConnectionNetwork
  settings: ConnectionSettings
  /** Default: no storage. */
  files?: ConnectionFiles | null
  /** False if another node may have the lease. Called before each frame. Default: always true. */
  mayAct?: () => boolean
  /** Shared by the connections of a node. Default: a new one. */
  eventLoopBudget?: EventLoopBudget
  /** Shared by the connections of a node. Default: a new one. */
  pacing?: ConnectionPacing
  logger: Logger
  now?: () => number
  /** Called when `isLinking` may have changed. */
  onLinking?: (isLinking: boolean) => void
  onSent?: OnSent
  /** The fence refused a write, so the connection must be stopped. Called at most once. */
  onLeaseLost(): void
}

/** One instance's connection to WhatsApp, for as long as the lease lasts. */
export class Connection {
  readonly #options: ConnectionOptions
  readonly #now: () => number
  readonly #logger: Logger
  readonly #instanceId: string
  readonly #status: Status
  readonly #windingUp: WindingUp
  readonly #recorder: IncomingRecorder
  readonly #downloads: Downloads
  readonly #directory: DirectoryKeeper
  readonly #restriction: RestrictionWatch
  readonly #health: HealthLog
  readonly #links: LinkManager
  readonly #stopped = new AbortController()
  /** Every change of the mode runs in this chain, one step at a time. */
  #steps: Promise<void> = Promise.resolve()
  /** Version of the goal that is pursued or reached. Null: the goal has to be read and pursued. */
  #goalVersion: number | null = null
  #poll: NodeJS.Timeout | undefined
  #unsubscribe: () => void = () => undefined
  #leaseLost = false

  constructor(options: ConnectionOptions) {
    const { lease, store, logger } = options
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#logger = logger
    this.#instanceId = lease.instanceId
    const onFailed = (error: unknown) => this.#failed(error)
    const shared = { lease, logger, now: this.#now, signal: this.#stopped.signal, onFailed }
    const simulated = options.network.kind === 'simulated'
    this.#status = new Status({ ...shared, connections: store.connections, simulated, onLinking: options.onLinking })
    this.#windingUp = new WindingUp({ ...shared, store, status: this.#status })
    const { receiver = null, turns = new Turns(1) } = options.files ?? {}
    const mediaTerms = receiver?.terms ?? null
    this.#recorder = new IncomingRecorder({ ...shared, store, mediaTerms })
    this.#downloads = new Downloads({ ...shared, store, receiver, turns })
    this.#directory = new DirectoryKeeper({ ...shared, store })
    this.#health = new HealthLog({ ...shared, connections: store.connections })
    this.#restriction = new RestrictionWatch({
      now: this.#now,
      askWhatsapp: async () => this.#links.openLink?.askRestriction(),
      onChanged: () => {
        this.#links.sender.restrictionChanged()
        this.#step(() => this.#recordRestriction())
      },
    })
    this.#links = new LinkManager({
      ...options,
      ...shared,
      openProxy: createProxies(options.settings.proxyAddresses),
      pacing: options.pacing ?? new ConnectionPacing(),
      status: this.#status,
      windingUp: this.#windingUp,
      sender: this.#createSender(),
      recorder: this.#recorder,
      downloads: this.#downloads,
      directory: this.#directory,
      restriction: this.#restriction,
      health: this.#health,
      runStep: work => this.#step(work),
      onRest: next => this.#rest(next),
      onLoggedOut: ({ cause, reason }) => this.#windUp({ cause, reason }),
    })
  }

  /** Brings the connection to the stored goal, and follows changes of the goal. */
  start(): void {
    const checkGoal = () => this.#step(() => this.#checkGoal())
    const onGoal = () => {
      this.#links.hurry()
      checkGoal()
    }
    this.#unsubscribe = this.#options.store.hints.on('goal', onGoal, this.#instanceId)
    this.#poll = setInterval(checkGoal, POLL_INTERVAL_MS)
    this.#links.sender.start()
    this.#health.start()
    this.#downloads.wake()
    checkGoal()
  }

  /** True while a code is shown, and during the first login after a phone has linked. */
  get isLinking(): boolean {
    return this.#status.isLinking
  }

  /**
   * Stops within 3 s: stores buffered data, waits for sends in flight, and records `reconnecting` if it was connected.
   * `logOut`: the instance was deleted. First logs out with the keys in memory, within 8 s. Records no state.
   */
  async stop({ logOut = false }: { logOut?: boolean } = {}): Promise<void> {
    this.#unsubscribe()
    clearInterval(this.#poll)
    this.#links.cancelRetry()
    this.#stopped.abort()
    if (logOut) await this.#links.logOutDeleted()
    const wasConnected = this.#links.openLink !== null
    await waitAtMost(STOP_TIMEOUT_MS, this.#shutDown(wasConnected && !logOut && !this.#leaseLost))
    // Closes the link even if the store did not answer in time: another owner may open a socket from now on.
    this.#links.close()
  }

  async #shutDown(recordReconnecting: boolean): Promise<void> {
    await this.#links.settled().catch(() => undefined)
    this.#links.close()
    this.#restriction.stop()
    const ends = [this.#links.sender.stop(), this.#recorder.drained(), this.#downloads.stop(), this.#health.stop()]
    await Promise.all([...ends, this.#steps])
    // A step that was under way may have opened another link.
    this.#links.close()
    if (!recordReconnecting) return
    const reason = 'Pombal is stopping. It reconnects when it starts.'
    const { store, lease } = this.#options
    const change = { state: 'reconnecting', cause: 'stopping', reason } as const
    await store.connections.record(lease, change, this.#now()).catch(() => undefined)
  }

  /** Runs `work` after the earlier steps. A step that fails is logged; the next poll repeats it where necessary. */
  #step(work: () => Promise<void>): void {
    this.#steps = this.#steps.then(async () => {
      if (this.#stopped.signal.aborted || this.#leaseLost) return
      await work().catch(error => this.#failed(error))
    })
  }

  #createSender(): Sender {
    const { settings, files = null, eventLoopBudget = new EventLoopBudget() } = this.#options
    return new Sender({
      ...this.#options,
      groups: this.#directory.groups,
      files: files?.reader ?? null,
      eventLoopBudget,
      messageTtlMs: settings.messageTtlMs,
      ackTimeoutMs: settings.ackTimeoutMs,
      restriction: this.#restriction,
      health: this.#health,
      now: this.#now,
      onFailed: error => this.#failed(error),
    })
  }

  /** A kill before this write loses the restriction. The next refusal restores it. */
  async #recordRestriction(): Promise<void> {
    const { restriction } = this.#restriction
    await this.#status.record({ ...(this.#links.isConnected && this.#restriction.describe()), restriction })
    this.#logger.info({ instanceId: this.#instanceId, restriction }, 'connection.restriction')
  }

  // ── The goal ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #checkGoal(): Promise<void> {
    const record = await this.#status.find()
    if (!record) return
    this.#restriction.load(record.restriction)
    if (record.deleted) return this.#windUpDeleted()
    await this.#status.reportAway(record)
    if (record.goalVersion === this.#goalVersion) {
      await this.#links.passkeys.passOn(record.goalVersion)
      if (record.goal === 'online') await this.#links.keepOnline(record.proxy)
      if (record.state === 'logged_out') await this.#windingUp.failLeftOver()
      return
    }
    this.#goalVersion = record.goalVersion
    await this.#pursue(record).catch(error => {
      // The next poll pursues it again.
      this.#goalVersion = null
      throw error
    })
  }

  async #pursue(record: ConnectionRecord): Promise<void> {
    const { goal, state } = record
    this.#links.isFirstLogin ||= NEVER_CONNECTED.has(state)
    if (goal === 'online') await this.#goOnline(record)
    else if (goal !== 'idle') await this.#logOut(record)
    else if (!this.#links.hasLink && (state === 'linking' || state === 'connecting')) {
      const reason = 'Linking was interrupted. Connect again.'
      await this.#status.record({ ...NO_CODES, state: 'unlinked', cause: 'linking_interrupted', reason })
    }
  }

  async #goOnline(record: ConnectionRecord): Promise<void> {
    // A link that is open or logging in stays. A link that shows codes is replaced by one with a new code.
    if (this.#links.openLink || this.#links.isLoggingIn || this.#links.isPaired) return
    this.#links.reset(record.pairingPhone)
    // The process may have been killed before all messages of the previous number had failed.
    if (record.state === 'logged_out') await this.#windingUp.finishLogout()
    const { network } = this.#options
    if (network.kind !== 'none') return this.#links.open()
    const { cause, reason } = network
    // The goal stays, so the instance connects when the node starts with other settings.
    await this.#status.record({ ...NO_CODES, state: isLinked(record.state) ? 'stopped' : 'unlinked', cause, reason })
  }

  async #logOut({ state, cause }: ConnectionRecord): Promise<void> {
    this.#links.cancelRetry()
    // The logout was recorded but not finished. Its reason stays, and no socket is opened with the old credentials.
    // With the cause `asking_for_code`, linking has begun again since.
    if (state === 'logged_out' && cause !== 'asking_for_code')
      return this.#windingUp.finishLogout().then(() => this.#settleGoal())
    if (state === 'unlinked' || state === 'linking') {
      // A phone may scan the code until the link is closed.
      await this.#links.closeForGood()
      if (!(await this.#links.hasCredentials()))
        return this.#rest({ kind: 'rest', state: 'unlinked', cause: 'never_linked', reason: 'No number is linked.' })
    }
    // Written messages may still be acknowledged; no other message is started.
    this.#links.sender.detach()
    await waitAtMost(LOGOUT_DRAIN_MS, this.#links.sender.drained())
    // An exported session belongs to another program, which must stay linked.
    const isDone = cause === 'exported' || (await this.#links.logOut())
    // The next owner repeats the logout.
    if (this.#stopped.signal.aborted) return
    await this.#windUp(isDone ? LOGGED_OUT : NOT_CONFIRMED)
  }

  // ── Ends ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The connection stays without a socket until somebody changes the goal. */
  async #rest({ state, cause, reason }: Extract<NextStep, { kind: 'rest' }>): Promise<void> {
    await this.#status.record({ ...NO_CODES, state, cause, reason })
    await this.#settleGoal()
  }

  async #windUp(why: Pick<StoredConnection, 'cause' | 'reason'>): Promise<void> {
    await this.#links.closeForGood()
    this.#restriction.clear()
    await this.#replaceSender()
    await this.#windingUp.logOut(why, this.#goalVersion)
    await this.#settleGoal()
  }

  /** The old sender holds messages in memory that were accepted for the previous number. */
  async #replaceSender(): Promise<void> {
    await this.#links.sender.drained()
    await this.#links.sender.stop()
    this.#links.sender = this.#createSender()
    if (!this.#stopped.signal.aborted) this.#links.sender.start()
  }

  /** The stored credentials are already erased. With a link, `#leaseGone` and `stop({ logOut })` log out over it. */
  async #windUpDeleted(): Promise<void> {
    if (this.#links.hasLink) return this.#leaseGone()
    this.#links.cancelRetry()
    await this.#windingUp.failQueue('instance_deleted')
  }

  /** Changes the goal to `idle`, or from `relinked` to `online`, unless somebody has changed it since. */
  async #settleGoal(): Promise<void> {
    await this.#status.settleGoal('idle', this.#goalVersion)
    this.#goalVersion = null
    this.#step(() => this.#checkGoal())
  }

  // ── Failures ──────────────────────────────────────────────────────────────────────────────────────────────────

  #failed(error: unknown): void {
    if (error instanceof LeaseLost) this.#leaseGone()
    // After `LinkClosed`, the end of the link decides what follows.
    if (error instanceof LeaseLost || error instanceof LinkClosed) return
    const level = error instanceof StoreUnavailable ? 'warn' : 'error'
    this.#logger[level]({ err: error, instanceId: this.#instanceId }, 'connection.step_failed')
  }

  /** Nothing can be written any more. Closes the link, after a logout if the instance was deleted. */
  #leaseGone(): void {
    if (this.#leaseLost) return
    this.#leaseLost = true
    this.#links.sender.detach()
    if (!this.#stopped.signal.aborted) this.#options.onLeaseLost()
    this.#links.abandon(async () => {
      const record = await this.#options.store.connections.find(this.#instanceId)
      return record === null || record.deleted
    })
  }
}

export const createConnection = (options: ConnectionOptions) => new Connection(options)
