import { withDeadline } from '../../kit/deadline.ts'
import { LeaseLost } from '../../store/errors.ts'
import { untilStored } from '../../store/until-stored.ts'
import { numberOf } from '../baileys/addresses.ts'
import { createLibraryCaches } from '../baileys/library-caches.ts'
import { Link } from '../baileys/link.ts'
import type { LinkEnd } from '../baileys/link-end.ts'
import { DeviceCache } from '../baileys/recipient-devices.ts'
import { CredentialStore } from '../baileys/signal/credential-store.ts'
import { createRetryBudgets } from '../baileys/signal/retry-requests.ts'
import type { Network } from '../baileys/socket-options.ts'
import { answerCall } from '../receiving/answer-call.ts'
import type { Sender } from '../sending/sender.ts'
import { type NextStep, nextStep } from './after-close.ts'
import { Codes } from './codes.ts'
import type { LinkManagerOptions } from './link-manager-options.ts'
import { LOGOUT_WITHIN_MS, logOut, logOutOver } from './logging-out.ts'
import { PasskeySteps } from './passkey-steps.ts'
import { Pause } from './pause.ts'
import { ASKING, loggingIn, NO_CODES } from './status.ts'

/** A connection that lasted this long ends a series of failures. */
const LASTED_MS = 60_000
/** If the store takes longer to answer whether the instance was deleted, the link closes without a logout. */
const DELETED_TIMEOUT_MS = 500
/** WhatsApp's code for a message to a stranger that it refuses because the account is restricted. */
const RESTRICTED = 463

/** Opens and closes the links of a connection, one at a time, and decides what follows when a link ends. */
export class LinkManager {
  readonly #options: LinkManagerOptions
  readonly #devices: DeviceCache
  readonly #caches = createLibraryCaches()
  readonly #retryBudgets = createRetryBudgets(() => performance.now())
  readonly #pause = new Pause()
  readonly passkeys: PasskeySteps
  #link: Link | null = null
  #credentials: CredentialStore | null = null
  /** Resolves when the keys of the previous link are stored. */
  #keysStored: Promise<void> = Promise.resolve()
  #pairingPhone: string | null = null
  /** Null if the latest link was opened with stored credentials. */
  #codes: Codes | null = null
  #openedAt: number | null = null
  /** The sender of the account that is linked now. */
  sender: Sender
  /** True until the linked account has connected for the first time. */
  isFirstLogin = false
  #lastLogout: Promise<void> | null = null
  /** The URL of the proxy of the latest link. */
  #proxy: string | null = null

  constructor(options: LinkManagerOptions) {
    this.#options = options
    this.sender = options.sender
    this.#devices = new DeviceCache(options.now)
    this.passkeys = new PasskeySteps({ ...options, connections: options.store.connections })
  }

  get openLink(): Link | null {
    return this.#link?.isOpen ? this.#link : null
  }

  get hasLink(): boolean {
    return this.#link !== null
  }

  /** True while a socket with credentials is being opened. It opens or fails by itself. */
  get isLoggingIn(): boolean {
    return this.#codes === null && this.#link !== null && !this.#link.closed.aborted
  }

  /** True once a phone has linked over this link. Closing the link before WhatsApp ends it would undo the linking. */
  get isPaired(): boolean {
    return this.#codes !== null && this.#credentials?.creds.account !== undefined
  }

  /** True once `connected` is recorded, for as long as the link is open. */
  get isConnected(): boolean {
    return this.#openedAt !== null && this.openLink !== null
  }

  /** The goal has changed, so a person may wait for the link that is about to open. */
  hurry(): void {
    this.#options.pacing.hurry(this)
  }

  cancelRetry(): void {
    this.#pause.end()
  }

  /** Closes the link and forgets earlier failures. */
  reset(pairingPhone: string | null): void {
    this.close()
    this.#pause.end()
    this.#pause.forget()
    this.#pairingPhone = pairingPhone
  }

  close(): void {
    this.sender.detach()
    this.#options.downloads.detach()
    this.#link?.close()
    this.#keysStored = this.#credentials?.close() ?? this.#keysStored
    this.#link = null
    this.#credentials = null
    this.#openedAt = null
  }

  /** Opens a link if an error has left neither a link nor a retry. Replaces the link if the proxy has changed. */
  async keepOnline(proxy: string | null): Promise<void> {
    if (!this.hasLink && !this.#pause.isOn) return this.open()
    if (proxy === this.#proxy) return
    await this.settled()
    // The next link goes through the new proxy.
    if (this.isPaired) return
    this.reset(this.#pairingPhone)
    await this.open()
  }

  /** Closes the link and forgets what was cached for its account. After this, no keys of the account are written. */
  async closeForGood(): Promise<void> {
    this.close()
    this.#devices.flushAll()
    this.#options.directory.flush()
    await this.#keysStored
  }

  /** Logs out and closes the link if the instance was deleted, otherwise only closes it. */
  abandon(isDeleted: () => Promise<boolean>): void {
    const link = this.#link
    if (!link) return
    withDeadline(DELETED_TIMEOUT_MS, isDeleted())
      .catch(() => false)
      .then(deleted => (deleted ? this.logOutDeleted() : undefined))
      .finally(() => link.close())
  }

  /** Logs a deleted instance out over its last link. Without its erased credentials, no new link can open. Idempotent. */
  async logOutDeleted(): Promise<void> {
    this.#lastLogout ??= this.#logOutOverLast()
    await this.#lastLogout
  }

  async #logOutOverLast(): Promise<void> {
    const link = this.#link
    if (!link || !this.#credentials?.creds.account) return
    if (!(await logOutOver(link, LOGOUT_WITHIN_MS))) this.#noteNotUnlinked(link)
  }

  /**
   * Logs out over the open link, or over a new one.
   * @returns whether WhatsApp has confirmed it. If not, the phone may still list this device.
   */
  async logOut(): Promise<boolean> {
    const reopen = async () => {
      this.close()
      await this.open({ onlyWithCredentials: true })
      return this.#link
    }
    const link = this.openLink ?? (await reopen())
    const isUnlinked = link === null ? !(await this.hasCredentials()) : await logOut(link, reopen)
    if (!isUnlinked) this.#noteNotUnlinked(this.#link)
    return isUnlinked
  }

  /** The phone may still list this device. */
  #noteNotUnlinked(link: Link | null): void {
    const { lease, logger } = this.#options
    logger.warn({ instanceId: lease.instanceId, code: link?.end?.code ?? null }, 'instance.not_unlinked')
  }

  /** Resolves when the credentials are stored. */
  async settled(): Promise<void> {
    await this.#credentials?.settled()
  }

  async hasCredentials(): Promise<boolean> {
    const { lease, store, signal } = this.#options
    return untilStored(() => CredentialStore.exist(store.credentials, lease.instanceId), signal)
  }

  async open({ onlyWithCredentials = false } = {}): Promise<void> {
    const { lease, store, network, pacing, signal, status, windingUp } = this.#options
    if (network.kind === 'none') return
    // Somebody waits for a code, the first login or a logout. The other links, of which thousands may wait, first get a turn.
    const isUrgent = this.isFirstLogin || onlyWithCredentials
    if (!isUrgent) await pacing.take(this, signal)
    await this.#keysStored
    if (signal.aborted) return
    const options = {
      lease,
      credentials: store.credentials,
      onBroken: (error: unknown) => this.#keysRefused(credentials, error),
    }
    const found = await untilStored(() => CredentialStore.find(options), signal)
    if (!found && onlyWithCredentials) return
    if (!found) await windingUp.failLeftOver()
    const credentials: CredentialStore = found ?? CredentialStore.create(options)
    this.#credentials = credentials
    this.#codes = found ? null : this.#createCodes(network)
    this.#proxy = (await status.find())?.proxy ?? null
    // Removes a code of an earlier socket.
    await status.record({ ...NO_CODES, ...(found ? loggingIn(this.isFirstLogin) : ASKING) })
    if (isUrgent) await pacing.take(this, signal, true)
    if (signal.aborted) return
    this.#link = this.#createLink(network, credentials)
  }

  #createLink(network: Network, credentials: CredentialStore): Link {
    const { lease, store, settings, mayAct, directory, recorder, restriction, health, runStep } = this.#options
    const proxy = this.#proxy === null ? null : this.#options.openProxy(this.#proxy, lease.instanceId)
    const link: Link = new Link({
      network,
      proxy,
      version: settings.version,
      device: settings.device,
      passkeys: settings.passkeys,
      queryTimeoutMs: settings.queryTimeoutMs,
      keepAliveMs: settings.keepAliveMs,
      credentials,
      devices: this.#devices,
      caches: this.#caches,
      retryBudgets: this.#retryBudgets,
      mayAct,
      findGroup: group => directory.groups.describe(group),
      refreshGroup: group => directory.groups.refresh(group, link),
      findSent: id => store.messages.findSent(lease.instanceId, id),
      logger: this.#options.logger.child({ instanceId: lease.instanceId }),
      events: {
        qr: text => runStep(async () => (link === this.#link ? this.#codes?.show(link, text) : undefined)),
        newCode: qr => runStep(async () => (link === this.#link ? this.#codes?.replace(link, qr) : undefined)),
        passkey: step => runStep(async () => (link === this.#link ? this.passkeys.show(link, step) : undefined)),
        paired: () => runStep(() => this.#notePaired(link)),
        opened: () => runStep(() => this.#noteOpened(link)),
        closed: end => runStep(() => this.#noteClosed(link, end)),
        acknowledged: ack => {
          // The restriction must be known before the sender starts another message.
          if (ack.error === RESTRICTED) restriction.onRefusal()
          this.sender.acknowledged(ack)
        },
        receipt: async receipt => {
          this.sender.noteReceipt(await recorder.recordReceipt(receipt, link.closed))
        },
        received: async message => {
          await recorder.recordIncoming(message, link.closed, change => directory.groups.isAdmin(change, link))
          this.sender.noteSender(message)
          if ('file' in message) this.#options.downloads.wake()
        },
        called: call => answerCall(this.#options, call, link.closed),
        isRecorded: message => recorder.isRecorded(message, link.closed),
        frame: health.frame,
        undecryptable: health.undecryptable,
        restriction: notice => restriction.onNotice(notice),
        groupChanged: (group, changes, notice) => directory.recordChanges(group, { changes, notice }, link),
        groupsListed: groups => directory.recordListed(groups, link),
        contacts: contacts => directory.recordContacts(contacts, link),
        addressBookReadable: () => directory.readAddressBook(link),
        addressBookChanging: () => directory.beginAddressBookChange(link),
        addressBookReported: () => directory.endAddressBookChange(link),
      },
    })
    return link
  }

  #createCodes(network: Network): Codes {
    const { lease, status, logger, now } = this.#options
    return new Codes({ instanceId: lease.instanceId, network, pairingPhone: this.#pairingPhone, status, logger, now })
  }

  /** The keys in memory may be newer than the stored keys, so they must not encrypt or acknowledge anything more. */
  #keysRefused(credentials: CredentialStore, error: unknown): void {
    if (credentials !== this.#credentials) return
    const { onFailed, runStep } = this.#options
    onFailed(error)
    if (error instanceof LeaseLost) return
    this.#link?.close()
    runStep(async () => {
      if (credentials !== this.#credentials) return
      this.close()
      const reason = 'The keys of the connection could not be stored or read.'
      await this.#openAfterPause({ state: 'reconnecting', cause: 'keys_not_stored', reason, slow: false })
    })
  }

  // ── Events of the link ────────────────────────────────────────────────────────────────────────────────────────

  async #notePaired(link: Link): Promise<void> {
    if (link !== this.#link) return
    this.isFirstLogin = true
    await this.#options.status.record({ ...NO_CODES, ...loggingIn(this.isFirstLogin) })
  }

  async #noteOpened(link: Link): Promise<void> {
    const { windingUp, restriction, status } = this.#options
    if (link !== this.#link || !link.isOpen) return
    // Messages are accepted only for a number that is recorded as connected, so queued ones belong to the previous number.
    if (this.isFirstLogin) await windingUp.failLeftOver()
    if (!link.isOpen) return
    this.#openedAt = performance.now()
    this.isFirstLogin = false
    const phone = numberOf(link.self.id) ?? null
    const restricted = { ...restriction.describe(), restriction: restriction.restriction }
    await status.record({ ...NO_CODES, state: 'connected', phone, ...restricted })
    this.sender.attach(link)
    this.#options.downloads.attach(link)
    this.#options.directory.attach(link)
    restriction.ask()
  }

  async #noteClosed(link: Link, end: LinkEnd): Promise<void> {
    if (link !== this.#link) return
    const { network, lease, logger, health, onRest, onLoggedOut } = this.#options
    const lasted = this.#openedAt !== null && performance.now() - this.#openedAt > LASTED_MS
    const linked = this.#credentials?.creds.account !== undefined
    // The next socket reads the stored credentials. After linking, it opens immediately (515).
    await this.settled()
    this.close()
    if (lasted) this.#pause.forget()
    logger.info({ instanceId: lease.instanceId, code: end.code }, 'connection.closed')
    health.closed(end.code)
    const next = nextStep(end, {
      linked,
      isFirstLogin: this.isFirstLogin,
      codesRanOut: this.#codes?.ranOut === true,
      linksItself: network.kind === 'simulated' && network.linkBy !== undefined,
      ...this.#pause.inARow,
    })
    if (next.kind === 'logged_out') return onLoggedOut(next)
    if (next.kind === 'rest') return onRest(next)
    if (next.kind === 'pause') return this.#openAfterPause(next)
    this.#pause.noteRestart()
    await this.open()
  }

  async #openAfterPause(next: Omit<Extract<NextStep, { kind: 'pause' }>, 'kind'>): Promise<void> {
    const { runStep, status, now } = this.#options
    const { cause, reason, slow } = next
    const pauseMs = this.#pause.begin(slow, runStep, () => this.open())
    const when = `Trying again in ${Math.max(1, Math.round(pauseMs / 1_000))} s.`
    const state = next.state === 'reconnecting' ? loggingIn(this.isFirstLogin).state : next.state
    const retryAt = now() + Math.round(pauseMs)
    await status.record({ ...NO_CODES, retryAt, state, cause, reason: `${reason} ${when}` })
  }
}
