import { setTimeout as sleep } from 'node:timers/promises'
import {
  type BinaryNode,
  DisconnectReason,
  type GroupMetadata,
  makeWASocket,
  S_WHATSAPP_NET,
  type WAMessage,
  type WASocket,
} from 'baileys'
import type { Logger } from 'pino'
import type { IncomingMessage } from '../../domain/event.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { PreparedMessage } from '../../store/messages/messages.ts'
import { untilStored } from '../../store/until-stored.ts'
import { type Self, userOf } from './addresses.ts'
import { decodeContent } from './content.ts'
import { Correspondents } from './correspondents.ts'
import { sendDurably } from './durable-frames.ts'
import { watchHandshake } from './handshake.ts'
import type { LibraryCaches } from './library-caches.ts'
import { describeLibraryError } from './library-errors.ts'
import { createLibraryLogger } from './library-logger.ts'
import { containStanzas, LibraryScope, outsideLibrary } from './library-scope.ts'
import { LIBRARY_BROKE, type LinkEnd, NOT_RECORDED, parseLinkEnd } from './link-end.ts'
import { type LookUp, lookUp } from './look-up.ts'
import { parseIncoming } from './parse-incoming.ts'
import { parseReceipt, type Receipt, type SentReceipt } from './parse-receipt.ts'
import { ReceiptGuard } from './receipt-guard.ts'
import { dropKeyErrors, relayToDevices } from './recipient-devices.ts'
import { recordFirst } from './record-first.ts'
import { Ciphertexts } from './signal/ciphertexts.ts'
import type { CredentialStore } from './signal/credential-store.ts'
import type { DeviceCache } from './signal/device-cache.ts'
import { Journal } from './signal/journal.ts'
import { boundRetryRequests, type RetryBudgets } from './signal/retry-requests.ts'
import { createSignalRepository, sending } from './signal/signal-repository.ts'
import { type Network, QUERY_TIMEOUT_MS, socketOptions } from './socket-options.ts'
import { noteToken } from './token-notes.ts'
import { type VitalSigns, watchVitalSigns } from './vital-signs.ts'

export type { GroupMetadata } from 'baileys'

/** After this a socket that was told to close is torn down: a dead peer never answers the close frame. */
const CLOSE_GRACE_MS = 1_000
/** How often WhatsApp is asked for what it has kept for us, when it does not say that this was all. */
const MAX_ACTIVATIONS = 3

/**
 * Messages whose acknowledgement is known by their id alone, if it comes: the latest. Four times as many as wait at once, for
 * those that are acknowledged after their time.
 */
const UNANSWERED = 2_048

/** WhatsApp's code for a refusal that is no number. */
const UNKNOWN_ERROR = 500

/** WhatsApp's answer to a message of ours. */
export interface Acknowledgement {
  whatsappId: string
  /** Set when WhatsApp refused the message. */
  error: number | undefined
  /** WhatsApp's hash of the recipient's devices: they may be others than we wrote to. */
  devicesHash: string | undefined
}

export interface LinkEvents extends VitalSigns {
  /** A new QR code to show, in place of the one before. */
  qr(text: string): void
  /** A phone has linked us; WhatsApp asks for a new socket next. */
  paired(): void
  opened(): void
  /** It ended by itself: the last event of a link; everything buffered was given out before. */
  closed(end: LinkEnd): void
  acknowledged(ack: Acknowledgement): void
  /** WhatsApp is told that we have the receipt once this resolves; it comes again if it rejects. */
  receipt(receipt: SentReceipt): Promise<void>
  /** The same for a message. */
  received(message: IncomingMessage): Promise<void>
  groupChanged(group: string): void
}

export interface LinkOptions {
  network: Network
  version?: [number, number, number] | undefined
  queryTimeoutMs?: number | undefined
  keepAliveMs?: number | undefined
  credentials: CredentialStore
  devices: DeviceCache
  caches: LibraryCaches
  retryBudgets: RetryBudgets
  /** Asked before each frame: false once another node may have the account. By default always true. */
  mayAct?: (() => boolean) | undefined
  findGroup(group: string): GroupMetadata | undefined
  findSent(whatsappId: string): Promise<PreparedMessage | null>
  events: LinkEvents
  /** Sees every stanza that WhatsApp sends, before anything is made of it: for a diagnosis. */
  onStanza?: (stanza: BinaryNode) => void
  logger: Logger
}

/** One socket to WhatsApp, from opening to its end. It is never opened again: the next one is a new link. */
export class Link {
  readonly #options: LinkOptions
  readonly #scope: LibraryScope
  readonly #socket: WASocket
  readonly #closed = new AbortController()
  readonly #ciphertexts = new Ciphertexts()
  /** A socket without an account only links one: WhatsApp hands nothing out over it. */
  readonly #links: boolean
  /** Written over this link and not answered yet, by WhatsApp id. */
  readonly #unanswered = new BoundedMap<string, true>(UNANSWERED)
  #isOpen = false
  /** WhatsApp has handed out all that it had kept for us. */
  #caughtUp = false
  #ended = false
  /** Errors that the library left unhandled. */
  #failures = 0

  constructor(options: LinkOptions) {
    this.#options = { ...options, events: outsideLibrary(options.events) }
    this.#links = options.credentials.creds.account === undefined
    this.#scope = new LibraryScope({
      failed: error => this.#libraryFailed(error),
      broke: error => {
        this.#libraryFailed(error)
        this.#endAs(LIBRARY_BROKE)
      },
    })
    this.#socket = this.#scope.run(() => this.#open())
  }

  #open(): WASocket {
    const options = outsideLibrary(this.#options)
    const { credentials, caches, network, version, queryTimeoutMs, keepAliveMs } = options
    const journal = new Journal(credentials)
    const socket = makeWASocket(
      socketOptions({
        network,
        version,
        queryTimeoutMs,
        keepAliveMs,
        auth: { creds: credentials.creds, keys: credentials.keys },
        logger: createLibraryLogger(options.logger),
        makeSignalRepository: (auth, logger, pnToLid) =>
          createSignalRepository(auth, logger, pnToLid, {
            journal,
            onDecrypted: (ciphertext, plaintext) => this.#decrypted(ciphertext, plaintext),
            settled: () => credentials.settled(),
            onClose: () => this.#ending(),
          }),
        getMessage: async key => {
          const sent = key.id ? await options.findSent(key.id) : null
          return sent ? decodeContent(sent.content) : undefined
        },
        cachedGroupMetadata: async group => options.findGroup(group),
        userDevicesCache: options.devices,
        ...caches,
      }),
    )
    boundRetryRequests(socket, options.retryBudgets)
    // What was sent is asked of the store. Baileys would keep it too, and the transaction of its send with it.
    if (socket.messageRetryManager) socket.messageRetryManager.addRecentMessage = () => undefined
    sendDurably(
      socket,
      () => Promise.all([this.#sendRecorded(), credentials.settled()]),
      options.mayAct ?? (() => true),
      () => this.#endAs(NOT_RECORDED),
    )
    watchHandshake(socket, this.closed, (code, error) => {
      if (error !== undefined) this.#log(error, 'frame')
      this.#endAs(code)
    })
    options.devices.attach(credentials)
    containStanzas(socket, this.#scope)
    this.#listen(socket)
    watchVitalSigns(socket, options.events)
    return socket
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Aborted when the link has ended. */
  get closed(): AbortSignal {
    return this.#closed.signal
  }

  get self(): Self {
    return this.#options.credentials.creds.me ?? {}
  }

  /**
   * Resolves once the message is written to the socket, which says nothing of its fate. Runs in a transaction of its
   * own: in Baileys' one for the whole account, an unanswered query for one recipient would hold up all others.
   * @param recorded nothing is written before it resolves, or at all if it rejects; meanwhile it is encrypted
   */
  async write(address: string, content: Uint8Array, whatsappId: string, recorded: Promise<void>): Promise<void> {
    this.#unanswered.set(whatsappId, true)
    const relay = { socket: this.#socket, devices: this.#options.devices, self: this.self }
    await this.#orClosed(() =>
      sending.run({ link: this, recorded }, () =>
        this.#socket.authState.keys.transaction(
          () => relayToDevices(relay, address, decodeContent(content), whatsappId),
          `send ${address}`,
        ),
      ),
    )
    this.#inBackground('token', () => noteToken(this.#socket, this.#options.credentials, address))
  }

  lookUp(number: string): Promise<LookUp> {
    return this.#orClosed(() => lookUp(number, node => this.#socket.query(node)))
  }

  /** @throws what WhatsApp answered; its code is `data` */
  queryGroup(group: string): Promise<GroupMetadata> {
    return this.#orClosed(() => this.#socket.groupMetadata(group))
  }

  /** WhatsApp answers with a notice of the restriction, if at all. */
  async askRestriction(): Promise<void> {
    await this.#orClosed(() => this.#socket.fetchAccountReachoutTimelock())
  }

  /**
   * The next message to the group brings the key to read it with to every member again. Baileys takes it that they have the
   * key once a message with it was written, whatever became of that one.
   */
  shareKeyAgain(group: string): void {
    this.#options.credentials.write([{ type: 'sender-key-memory', id: group, value: null }])
  }

  /** The next message to this address asks WhatsApp anew for its devices. */
  async forgetDevices(address: string): Promise<void> {
    const user = userOf(address)
    const { lidMapping } = this.#socket.signalRepository
    const lid = await this.#scope.run(() => lidMapping.getLIDForPN(address)).catch(() => null)
    for (const one of [user, userOf(lid)]) if (one) await this.#options.devices.del(one)
  }

  requestPairingCode(phone: string): Promise<string> {
    return this.#orClosed(() => this.#socket.requestPairingCode(phone))
  }

  /** Unlinks the account from the phone; resolves once that is written, or at once when there is no way to. */
  async logOut(): Promise<void> {
    if (!this.#isOpen) return
    await this.#scope.run(() => this.#socket.logout()).catch(error => this.#log(error, 'logout'))
  }

  /** Gives out what is buffered, then closes, without an event. Idempotent. */
  close(): void {
    if (this.#ended) return
    // Not awaited: it waits for the peer to answer the close frame.
    this.#inBackground('end', () => this.#socket.end(undefined))
    this.#markEnded()
  }

  #sendRecorded(): Promise<void> | undefined {
    const send = sending.getStore()
    return send?.link === this ? send.recorded : undefined
  }

  #listen(socket: WASocket): void {
    const { ev, ws } = socket
    const { credentials, events, onStanza } = this.#options
    const { lid } = this.self
    ev.on('creds.update', () => {
      // Baileys takes the LID from every login, also when none is told there.
      const { me } = credentials.creds
      if (me && lid) me.lid ??= lid
      credentials.touchCreds()
      // A failure has ended the socket already.
      this.#inBackground('creds', () => credentials.settled())
    })
    ev.on('connection.update', update => {
      if (update.qr) events.qr(update.qr)
      if (update.isNewLogin) {
        events.paired()
        this.#inBackground('restart', () => this.#restart())
      }
      if (update.receivedPendingNotifications) this.#caughtUp = true
      if (update.connection === 'open' && !this.#links) {
        this.#isOpen = true
        events.opened()
        this.#inBackground('activate', () => this.#activate())
      }
      if (update.connection === 'close') this.#end(parseLinkEnd(update.lastDisconnect?.error))
    })
    ev.on('messages.upsert', ({ messages }) => {
      for (const message of messages) this.#upserted(message)
    })
    ev.on('groups.update', groups => {
      for (const { id } of groups) if (id) events.groupChanged(id)
    })
    ev.on('group-participants.update', ({ id }) => events.groupChanged(id))
    // `ws` leaves an HTTP answer other than 101 to whoever listens; Baileys listens, and would wait for ever.
    ws.on('unexpected-response', () => this.#endAs(DisconnectReason.unavailableService))
    if (onStanza) ws.on('frame', frame => frame instanceof Uint8Array || onStanza(frame))
    ws.prependListener('frame', frame => {
      if (!(frame instanceof Uint8Array)) dropKeyErrors(frame)
    })
    ws.prependListener('CB:message', (node: BinaryNode) => {
      this.#ciphertexts.note(node)
      // Baileys takes kept messages one after the other, and live ones beside them as soon as it knows their addresses: they
      // would overtake one another. Marked as kept, all go through the one queue.
      node.attrs['offline'] ??= '0'
    })
    // Baileys tells of refusals only, and of those after the fact.
    ws.on('CB:ack', ({ attrs: { id, error, phash, ...rest } }: BinaryNode) => {
      // By the id: not every network names the class.
      if (!id || (rest['class'] !== 'message' && !this.#unanswered.has(id))) return
      this.#unanswered.delete(id)
      const code = error === undefined ? undefined : Number.parseInt(error, 10) || UNKNOWN_ERROR
      events.acknowledged({ whatsappId: id, error: code, devicesHash: phash })
    })
    this.#guardReceipts(socket)
  }

  #guardReceipts(socket: WASocket): void {
    const { credentials, events, findSent, findGroup } = this.#options
    const correspondents = new Correspondents(credentials)
    const guard = new ReceiptGuard({
      correspondents,
      self: () => this.self,
      findSent: id => untilStored(() => findSent(id), this.closed),
      findLid: address => socket.signalRepository.lidMapping.getLIDForPN(address),
      findGroup: async group => findGroup(group) ?? socket.groupMetadata(group),
    })
    const findAddress = (chat: string) => async (id: string) => (await guard.isAbout(id, chat))?.address ?? null
    const record = async (receipt: Receipt) => {
      const { chat } = receipt
      const from = await correspondents.addressesOf(chat)
      await events.receipt({ ...receipt, from, findAddress: findAddress(chat) })
      return true
    }
    const recordReceipt = (node: BinaryNode) => {
      if (node.attrs['type'] === 'retry') return this.#resend(socket, guard, node)
      const receipt = parseReceipt(node, this.self)
      return receipt && record(receipt)
    }
    recordFirst(socket, 'CB:receipt', recordReceipt, this.closed, error => this.#notRecorded(error))
  }

  /** What may not be sent again is acknowledged, so that WhatsApp does not deliver the request anew. */
  async #resend(socket: WASocket, guard: ReceiptGuard, node: BinaryNode): Promise<boolean> {
    if (await guard.mayResend(node)) return true
    this.#options.logger.warn({ whatsappId: node.attrs['id'] }, 'receipt.foreign_retry_refused')
    this.#inBackground('ack', () => socket.sendMessageAck(node))
    return false
  }

  /**
   * Asks for what WhatsApp has kept, if Baileys did so in vain: it asks once, and not at all when a query before that went
   * unanswered. Until it is asked WhatsApp gives us nothing, neither messages nor receipts.
   */
  async #activate(): Promise<void> {
    const { queryTimeoutMs = QUERY_TIMEOUT_MS } = this.#options
    for (let asked = 0; asked < MAX_ACTIVATIONS; asked += 1) {
      await sleep(queryTimeoutMs, undefined, { signal: this.closed, ref: false })
      if (this.#caughtUp) return
      const attrs = { to: S_WHATSAPP_NET, type: 'set', xmlns: 'passive' }
      await this.#socket.query({ tag: 'iq', attrs, content: [{ tag: 'active', attrs: {} }] }).catch(() => undefined)
      this.#socket.ev.flush()
    }
  }

  /** After linking WhatsApp asks for a new socket (515); one that does not gets it all the same. */
  async #restart(): Promise<void> {
    const { queryTimeoutMs = QUERY_TIMEOUT_MS } = this.#options
    await sleep(queryTimeoutMs, undefined, { signal: this.closed, ref: false })
    this.#endAs(DisconnectReason.restartRequired)
  }

  /** @throws when the message could not be recorded: the link is ending, and no receipt goes out any more */
  async #decrypted(ciphertext: Uint8Array, plaintext: Uint8Array): Promise<void> {
    const message = this.#ciphertexts.messageIn(ciphertext, plaintext, this.self)
    if (!message) return
    try {
      await this.#receive(message)
    } catch (error) {
      // Before Baileys takes it for a message that it could not decrypt, and asks the sender for it again.
      this.#notRecorded(error)
      throw error
    }
  }

  /** The socket ends, and what it delivered comes again over the next one. */
  #notRecorded(error: unknown): void {
    this.#log(error, 'record')
    this.#endAs(NOT_RECORDED)
  }

  /** Ends the socket for a reason that Baileys does not know. */
  #endAs(code: number): void {
    if (this.#ended) return
    this.close()
    this.#options.events.closed({ code, deviceRemoved: false })
  }

  /** Messages that come by other ways than a ciphertext, such as one that the phone sends again. */
  #upserted(message: WAMessage): void {
    this.#inBackground('upsert', () => this.#receive(message))
  }

  async #receive(message: WAMessage): Promise<void> {
    const { lidMapping } = this.#socket.signalRepository
    const incoming = await parseIncoming(message, lidMapping, this.self)
    if (incoming) await this.#options.events.received(incoming)
  }

  /** Called as the socket starts to end, while its events still have listeners. */
  #ending(): void {
    if (this.#ended) return
    this.#isOpen = false
    // What Baileys has buffered it would throw away.
    this.#socket?.ev.flush()
    setTimeout(() => this.#tearDown(), CLOSE_GRACE_MS).unref()
  }

  #tearDown(): void {
    // The WebSocket behind Baileys' client is not in its types; without this a dead peer keeps it for 30 s.
    const { socket } = this.#socket.ws as unknown as { socket: { terminate(): void } | null }
    socket?.terminate()
  }

  #end(end: LinkEnd): void {
    if (this.#ended) return
    this.#markEnded()
    this.#options.events.closed(end)
  }

  #markEnded(): void {
    this.#ended = true
    this.#isOpen = false
    this.#scope.end()
    this.#closed.abort()
  }

  /** Baileys leaves calls hanging when a socket ends; and rejects with a bare number when it is cut. */
  #orClosed<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this.#closed
    return new Promise((resolve, reject) => {
      const onClose = () => reject(new LinkClosed())
      signal.addEventListener('abort', onClose, { once: true })
      if (signal.aborted) onClose()
      this.#scope
        .run(work)
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', onClose))
    })
  }

  /** Nobody waits for it. */
  #inBackground(step: string, work: () => Promise<unknown>): void {
    this.#scope.run(work).catch(error => this.#log(error, step))
  }

  /** Logs the first error, the second, the fourth and so on: a peer may cause any number of them. */
  #libraryFailed(error: unknown): void {
    this.#failures += 1
    if ((this.#failures & (this.#failures - 1)) !== 0) return
    this.#options.logger.warn({ ...describeLibraryError(error), failures: this.#failures }, 'whatsapp.library_failed')
  }

  #log(error: unknown, step: string): void {
    if (this.#ended) return
    const { name, output } = (error ?? {}) as { name?: string; output?: { statusCode?: number } }
    this.#options.logger.debug({ step, error: name, code: output?.statusCode }, 'whatsapp.step_failed')
  }
}

/** The socket ended while something was under way. */
export class LinkClosed extends Error {
  override readonly name = 'LinkClosed'
  constructor() {
    super('The link to WhatsApp has ended.')
  }
}
