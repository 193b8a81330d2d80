import { setTimeout as sleep } from 'node:timers/promises'
import { type BinaryNode, DisconnectReason, makeWASocket, type WAMessageKey, type WASocket } from 'baileys'
import type { GroupDetails } from '../../domain/recipients/group.ts'
import { acknowledgePlainly } from './acknowledge-plainly.ts'
import { lidOf, type Self } from './addresses.ts'
import { decodeContent, decodeSent } from './encode-content.ts'
import { createLibraryLogger, LibraryCalls, outsideLibrary } from './library-scope.ts'
import { readAddressBook, reportContacts } from './link/contacts.ts'
import { AcknowledgementReader, containStanzas, sendDurably, watchHandshake, watchVitalSigns } from './link/frames.ts'
import { recordGroupChanges } from './link/group-notices.ts'
import { answerCalls } from './link/incoming-calls.ts'
import { IncomingMessages } from './link/incoming-messages.ts'
import { LidFinder } from './link/lid-finder.ts'
import { LinkFiles } from './link/link-files.ts'
import { findMetadata, type LinkOptions } from './link/link-options.ts'
import { LinkingWatch } from './link/linking-watch.ts'
import { listGroups } from './link/list-groups.ts'
import { PendingMessages } from './link/pending-messages.ts'
import { requestCopiesFirst } from './link/phone-copies.ts'
import { markRead } from './link/read-marks.ts'
import { recordReceipts } from './link/receipts.ts'
import { LIBRARY_BROKE, LINKING_FAILED, type LinkEnd, NOT_CAUGHT_UP, NOT_RECORDED, parseLinkEnd } from './link-end.ts'
import { removeDevice } from './log-out.ts'
import { type LookUp, lookUp, lookUpLid } from './look-up.ts'
import type { Attachment } from './media/attach.ts'
import { toGroupDetails } from './parsing/group.ts'
import { dropUnusable, forgetDevices, noteToken, relayToDevices } from './recipient-devices.ts'
import { Journal } from './signal/journal.ts'
import { boundRetryRequests } from './signal/retry-requests.ts'
import { adaptKeys, noteUnanswered, sending, untilDurable } from './signal/send-context.ts'
import { createSignalRepository } from './signal/signal-repository.ts'
import { QUERY_TIMEOUT_MS, socketOptions } from './socket-options.ts'

export { LinkClosed } from './library-scope.ts'
export type { Acknowledgement, LinkEvents } from './link/events.ts'

/** After this time a closing connection is destroyed, because a dead peer never answers the close frame. */
const CLOSE_GRACE_MS = 1_000

/** One socket to WhatsApp, from opening to its end. It is never reopened: the next socket is a new link. */
export class Link {
  readonly #options: LinkOptions
  readonly #calls: LibraryCalls
  readonly #socket: WASocket
  readonly #incoming: IncomingMessages
  /** Aborted when the link has ended. */
  readonly closed: AbortSignal
  readonly files: LinkFiles
  readonly #acknowledgements = new AcknowledgementReader()
  #contactsReported: () => Promise<unknown> = async () => undefined
  /** Null if the number is linked. Otherwise the socket links a number, and WhatsApp delivers no messages over it. */
  readonly linking: LinkingWatch | null
  /** The link is logged in and has not begun to end. */
  isOpen = false
  /** How the link ended. Null while it is open, and after `close`. */
  end: LinkEnd | null = null

  constructor(options: LinkOptions) {
    this.#options = { ...options, events: outsideLibrary(options.events) }
    this.#calls = new LibraryCalls(options.logger, () => this.#endAs(LIBRARY_BROKE))
    this.closed = this.#calls.closed
    const simulated = options.network.kind === 'simulated'
    this.files = new LinkFiles(this.#calls, () => this.#socket, { simulated, proxy: options.proxy ?? null })
    this.#incoming = new IncomingMessages({
      ...this.#options,
      plaintext: simulated,
      self: () => this.self,
      mapping: () => this.#socket.signalRepository.lidMapping,
    })
    this.#socket = this.#calls.run(() => this.#open())
    this.linking = options.credentials.creds.account ? null : this.#watchLinking()
  }

  #open(): WASocket {
    const options = outsideLibrary(this.#options)
    const { credentials, caches, network, proxy, version, device, queryTimeoutMs, keepAliveMs } = options
    const transport = { network, proxy, version, device, queryTimeoutMs, keepAliveMs }
    const mayAct = options.mayAct ?? (() => true)
    const journal = new Journal(credentials)
    const socket = makeWASocket(
      socketOptions({
        ...transport,
        auth: { creds: credentials.creds, keys: credentials.keys },
        logger: createLibraryLogger(options.logger, receipt => this.#incoming.correct(receipt), noteUnanswered),
        makeSignalRepository: (auth, logger, pnToLid) =>
          createSignalRepository(auth, logger, pnToLid, {
            journal,
            onDecrypted: (ciphertext, plaintext) => this.#decrypted(ciphertext, plaintext),
            standInOf: ciphertext => this.#incoming.standInOf(ciphertext),
            isRecorded: ciphertext => this.#incoming.isRecorded(ciphertext),
            settled: () => credentials.settled(),
            onClose: () => this.#ending(),
          }),
        getMessage: async key => {
          const sent = key.id ? await options.findSent(key.id) : null
          return sent ? decodeSent(sent) : undefined
        },
        cachedGroupMetadata: group => findMetadata(options, group),
        userDevicesCache: options.devices,
        ...caches,
      }),
    )
    acknowledgePlainly(socket, this.#calls, options.logger)
    requestCopiesFirst(socket, {
      cache: caches.placeholderResendCache,
      calls: this.#calls,
      logger: options.logger,
      self: () => this.self,
      mayRequest: id => options.retryBudgets.copies.take(id),
    })
    boundRetryRequests(socket, options.retryBudgets, () => options.events.undecryptable())
    // The store holds sent messages. Baileys would keep them in memory too, each with the transaction of its send.
    if (socket.messageRetryManager) socket.messageRetryManager.addRecentMessage = () => undefined
    const durable = () => untilDurable(this, credentials)
    sendDurably(socket, durable, mayAct, () => this.#endAs(NOT_RECORDED))
    watchHandshake(socket, this.closed, (code, error) => {
      if (error !== undefined) this.#calls.logFailure('frame', error)
      this.#endAs(code)
    })
    options.devices.attach(credentials)
    containStanzas(socket, this.#calls)
    this.#listen(socket)
    watchVitalSigns(socket, options.events)
    return socket
  }

  get self(): Self {
    return this.#options.credentials.creds.me ?? {}
  }

  /**
   * Resolves once the message is written to the socket, before WhatsApp has answered. Runs in its own transaction:
   * in Baileys' transaction for the whole account, an unanswered query for one recipient would block all others.
   * @param record called at most once, when the message is encrypted (`adaptKeys`). If it rejects, nothing is written.
   */
  async write(address: string, content: Uint8Array, whatsappId: string, record: () => Promise<void>): Promise<void> {
    const recordAndExpect = async () => {
      await record()
      this.#acknowledgements.expect(whatsappId, address)
    }
    const relay = { socket: this.#socket, devices: this.#options.devices, self: this.self }
    await this.#calls.orClosed(() =>
      sending.run(
        { link: this, address, record: recordAndExpect },
        this.#socket.authState.keys.transaction<void>,
        () => relayToDevices(relay, address, decodeContent(content), whatsappId),
        `send ${address}`,
      ),
    )
    this.#calls.inBackground('token', () => noteToken(this.#socket, this.#options.credentials, address))
  }

  markRead(key: WAMessageKey): Promise<void> {
    return this.#calls.orClosed(() => markRead(this.#socket, key))
  }

  type(address: string, state: 'composing' | 'paused'): void {
    this.#calls.inBackground('typing', () => this.#socket.sendPresenceUpdate(state, address))
  }

  uploadFile(attachment: Attachment): Promise<Uint8Array> {
    return this.files.upload(attachment)
  }

  /** @param to a number or a LID address */
  lookUp(to: string): Promise<LookUp> {
    const { query, signalRepository } = this.#socket
    return this.#calls.orClosed(() =>
      lidOf(to) === undefined ? lookUp(to, query) : lookUpLid(to, query, signalRepository.lidMapping),
    )
  }

  /** @throws Boom with WhatsApp's error code in `data` */
  async queryGroup(group: string): Promise<GroupDetails> {
    return toGroupDetails(await this.#calls.orClosed(() => this.#socket.groupMetadata(group)))
  }

  /** All groups of the account, in one query. @throws if WhatsApp does not answer */
  async queryGroups(): Promise<GroupDetails[]> {
    return this.#calls.orClosed(() => listGroups(this.#socket))
  }

  /** @returns false if it was not read; it may be readable later */
  readAddressBook(): Promise<boolean> {
    const { credentials } = this.#options
    return this.#calls.orClosed(() => readAddressBook(this.#socket, credentials, this.#contactsReported))
  }

  /** WhatsApp may answer with a notice of the restriction, which arrives as an event. */
  async askRestriction(): Promise<void> {
    await this.#calls.orClosed(() => this.#socket.fetchAccountReachoutTimelock())
  }

  /**
   * The next message to the group sends the sender key to every member again. Baileys assumes that they have it once a
   * message with the key was written, even if that message was lost.
   */
  shareKeyAgain(group: string): void {
    this.#options.credentials.write([{ type: 'sender-key-memory', id: group, value: null }])
  }

  /** The next message to this address, or to this group, queries WhatsApp for the devices again. */
  forgetDevices(address: string): Promise<void> {
    const { lidMapping } = this.#socket.signalRepository
    return forgetDevices(this.#options, address, () => this.#calls.run(() => lidMapping.getLIDForPN(address)))
  }

  requestPairingCode(phone: string): Promise<string> {
    return this.#calls.orClosed(() => this.#socket.requestPairingCode(phone))
  }

  /** Removes this device from the account. @throws unless WhatsApp confirms it */
  async logOut(): Promise<void> {
    if (!this.isOpen) throw new Error('The link is not open.')
    await this.#calls.orClosed(() => removeDevice(this.#socket, this.self.id!))
  }

  /** Emits buffered events, then closes without a `closed` event. Idempotent. */
  close(): void {
    if (this.closed.aborted) return
    // In the background, because `end` waits for the peer to answer the close frame.
    this.#calls.inBackground('end', () => this.#socket.end(undefined))
    this.#markEnded()
  }

  #listen(socket: WASocket): void {
    const { ws } = socket
    const { events, onStanza } = this.#options
    this.#listenToConnection(socket)
    if (onStanza) ws.on('frame', frame => frame instanceof Uint8Array || onStanza(frame))
    ws.prependListener('frame', dropUnusable)
    ws.prependListener('CB:message', (node: BinaryNode) => this.#incoming.note(node))
    const lids = new LidFinder(socket, this.#options.devices)
    const onStaleLid = (address: string) => this.#calls.inBackground('lid', () => lids.refresh(address))
    this.#acknowledgements.listen(socket, events, onStaleLid)
    const notices = { events, calls: this.#calls, onFailed: (error: unknown) => this.#notRecorded(error) }
    recordGroupChanges(socket, notices)
    answerCalls(socket, { ...notices, self: () => this.self })
    const { versions, reported } = reportContacts(socket, notices)
    this.#contactsReported = reported
    adaptKeys(socket.authState.keys, this, this.#options.credentials, versions)
    const receipts = { lids, self: () => this.self, record: events.receipt }
    recordReceipts(socket, { ...this.#options, ...notices, ...receipts })
  }

  #listenToConnection(socket: WASocket): void {
    const { credentials, events, logger, retryBudgets, queryTimeoutMs = QUERY_TIMEOUT_MS } = this.#options
    const { lid } = this.self
    const onStalled = () => this.#endAs(NOT_CAUGHT_UP)
    const limits = { answerMs: queryTimeoutMs, logins: retryBudgets.logins }
    const pending = new PendingMessages(socket, { ...limits, calls: this.#calls, logger, onStalled })
    socket.ev.on('creds.update', () => {
      // Baileys overwrites the LID at every login, even if the login does not contain one.
      const { me } = credentials.creds
      if (me && lid) me.lid ??= lid
      credentials.touchCreds()
      // A failure has already ended the socket.
      this.#calls.inBackground('creds', () => credentials.settled())
    })
    socket.ev.on('connection.update', update => {
      if (update.qr) this.linking?.show(update.qr)
      if (update.isNewLogin) {
        events.paired()
        this.#calls.inBackground('restart', () => this.#restart(queryTimeoutMs))
      }
      if (update.connection === 'open' && !this.linking) {
        this.isOpen = true
        events.opened()
        this.#calls.inBackground('activate', () => pending.begin())
      }
      if (update.connection === 'close') this.#end(parseLinkEnd(update.lastDisconnect?.error))
    })
    // An HTTP answer other than 101. If this event has a listener, such as Baileys', `ws` leaves the socket open.
    socket.ws.on('unexpected-response', () => this.#endAs(DisconnectReason.unavailableService))
  }

  /** After linking, WhatsApp requests a new socket (code 515). If it does not, the link ends with that code anyway. */
  async #restart(waitMs: number): Promise<void> {
    await sleep(waitMs, undefined, { signal: this.closed, ref: false })
    this.#endAs(DisconnectReason.restartRequired)
  }

  /** @throws if the message could not be recorded: the link ends, and no receipt is sent for it */
  async #decrypted(ciphertext: Uint8Array, plaintext: Uint8Array): Promise<void> {
    try {
      await this.#incoming.decrypted(ciphertext, plaintext)
    } catch (error) {
      // Ends the link first. Baileys treats this error as a failed decryption and would request the message again.
      this.#notRecorded(error)
      throw error
    }
  }

  /** Ends the link, so that WhatsApp delivers the stanza again over the next one. */
  #notRecorded(error: unknown): void {
    this.#calls.logFailure('record', error)
    this.#endAs(NOT_RECORDED)
  }

  #watchLinking(): LinkingWatch {
    const { credentials, events, queryTimeoutMs = QUERY_TIMEOUT_MS } = this.#options
    return new LinkingWatch(this.#socket, {
      creds: credentials.creds,
      closed: this.closed,
      queryTimeoutMs,
      passkeys: this.#options.passkeys === true,
      run: work => this.#calls.inBackground('passkey', work),
      onObstacle: obstacle => this.#endAs(LINKING_FAILED, obstacle),
      onCodesEnded: () => this.#endAs(DisconnectReason.timedOut),
      events,
    })
  }

  #endAs(code: number, obstacle = this.linking?.obstacleAtEnd): void {
    if (this.closed.aborted) return
    this.close()
    this.end = { code, deviceRemoved: false, obstacle }
    this.#options.events.closed(this.end)
  }

  /** Called when the socket starts to end, while its events still have listeners. */
  #ending(): void {
    if (this.closed.aborted) return
    this.isOpen = false
    // Baileys would discard its buffered events.
    this.#socket?.ev.flush()
    setTimeout(() => this.#tearDown(), CLOSE_GRACE_MS).unref()
  }

  #tearDown(): void {
    // Baileys' types hide its WebSocket. If it were not terminated, a dead peer would keep it open for 30 s.
    const { socket } = this.#socket.ws as unknown as { socket: { terminate(): void } | null }
    socket?.terminate()
  }

  #end(end: LinkEnd): void {
    if (this.closed.aborted) return
    this.#markEnded()
    this.end = { ...end, obstacle: this.linking?.obstacleAtEnd }
    this.#options.events.closed(this.end)
  }

  #markEnded(): void {
    this.isOpen = false
    this.#calls.end()
  }
}
