import type { Logger } from 'pino'
import { messageFailure } from '../../domain/message.ts'
import { backoffMs } from '../../kit/backoff.ts'
import type { Batcher } from '../../kit/batcher.ts'
import type { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { Acknowledgement } from '../baileys/link.ts'
import { AddressBook } from './address-book.ts'
import { Expiry } from './expiry.ts'
import type { GroupDirectory } from './group-directory.ts'
import { InFlightLimit } from './in-flight-limit.ts'
import { QueueReader } from './queue-reader.ts'
import type { QueuedChat } from './queued-chat.ts'
import { SendQueue } from './send-queue.ts'
import { type SendingLink, type SendOutcome, STALE_DEVICES, Transmitter } from './transmitter.ts'

/** Sends in flight at the same time, not counting slow ones. */
const MAX_FAST_SENDS = 24
/** A send that takes longer counts as slow: it waits for WhatsApp. */
const SLOW_AFTER_MS = 500
/** Sends in flight at the same time, including slow ones. */
const MAX_SENDS = 512
/** Outcomes being recorded at the same time. If the store is slower than WhatsApp, sending waits for it. */
const MAX_RECORDS = 256
/** Finds new rows whose hint was lost. */
const POLL_INTERVAL_MS = 5_000
const FIRST_RETRY_MS = 2_000
const MAX_RETRY_MS = 300_000

export interface SenderOptions {
  lease: Lease
  store: Pick<Store, 'messages' | 'numbers' | 'hints'>
  groups: GroupDirectory
  batcher: Batcher
  eventLoopBudget: EventLoopBudget
  messageTtlMs: number
  ackTimeoutMs?: number | undefined
  /** True while WhatsApp does not let the account write to strangers. */
  isRestricted?: () => boolean
  /** @param latencyMs from the write to WhatsApp's acknowledgement */
  onAcknowledged?: (latencyMs: number) => void
  logger: Logger
  now: () => number
  /** A write was refused by the fence, or an unexpected error occurred. */
  onFailed(error: unknown): void
}

/**
 * Sends the instance's queue while its lease lasts. It goes on across links. Each chat has one message in flight, in the
 * order accepted; many chats send at the same time. The loop is claim, send, record:
 *
 * - `#claim` takes the next message of each chat that may send now.
 * - `#send` gives one message to the transmitter, which returns the outcome.
 * - `#record` handles the outcome: it stores a final one, or schedules another attempt.
 *
 * After a kill at any step the row is still queued. The message is sent again with the same ID and content.
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #addresses: AddressBook
  readonly #queue = new SendQueue()
  readonly #stopped = new AbortController()
  readonly #reader: QueueReader
  readonly #inFlight: InFlightLimit
  readonly #expiry: Expiry
  readonly #transmitter: Transmitter
  /** By WhatsApp ID. */
  readonly #sends = new Map<string, Promise<void>>()
  readonly #records = new Map<string, Promise<void>>()
  #link: SendingLink | null = null
  #claimRequested = false
  /** Runs when the first of the waiting chats may be tried again. */
  #retryTimer: NodeJS.Timeout | undefined
  #poll: NodeJS.Timeout | undefined
  #unsubscribe: () => void = () => undefined

  constructor(options: SenderOptions) {
    this.#options = options
    const { lease, store, groups, now } = options
    const stored = <T>(work: () => Promise<T>) => this.#stored(work)
    const onFailed = (error: unknown) => this.#failed(error)
    this.#addresses = new AddressBook({ lease, numbers: store.numbers, groups, now, stored })
    this.#inFlight = new InFlightLimit({
      maxFast: MAX_FAST_SENDS,
      maxTotal: MAX_SENDS,
      slowAfterMs: SLOW_AFTER_MS,
      onSlow: () => this.#claimSoon(),
    })
    this.#reader = new QueueReader({
      sendQueue: this.#queue,
      readPage: (limit, afterSeq) => stored(() => store.messages.listQueued(lease.instanceId, limit, afterSeq)),
      canSend: () => this.#link?.isOpen === true,
      onRead: () => this.#claim(),
      onFailed,
    })
    this.#expiry = new Expiry({
      ...options,
      isInFlight: whatsappId => this.#sends.has(whatsappId) || this.#records.has(whatsappId),
      onExpired: message => this.#queue.remove(message),
      onFailed,
    })
    this.#transmitter = new Transmitter({
      ...options,
      addresses: this.#addresses,
      expiry: this.#expiry,
      isRestricted: () => this.#isRestricted,
      beginWrite: (message, address) => this.#queue.beginWrite(message, address),
      stored,
      onFailed,
    })
  }

  start(): void {
    const { store, lease } = this.#options
    const from = store.hints.shared ? 'overlap' : 'next'
    this.#unsubscribe = store.hints.on('queued', (_, __, to) => this.#reader.requestRead(from, to), lease.instanceId)
    this.#poll = setInterval(() => {
      this.#reader.poll()
      this.#claimSoon()
    }, POLL_INTERVAL_MS)
    this.#expiry.start()
    this.#reader.requestRead('start')
  }

  /** Sends through this link from now on. */
  attach(link: SendingLink): void {
    this.#link = link
    this.#queue.resetBackoff()
    this.#reader.requestRead('start')
    // If memory is full of waiting messages, no read happens that would start a claim.
    this.#claimSoon()
  }

  /** Starts no new send. Sends in flight end when their link closes. */
  detach(): void {
    this.#link = null
  }

  /** Resolves when nothing is in flight and every outcome is recorded. Call `detach` first. */
  async drained(): Promise<void> {
    await Promise.all(this.#sends.values())
    await Promise.all(this.#records.values())
  }

  /** Resolves when nothing is in flight or being recorded. Close the link first. */
  async stop(): Promise<void> {
    this.#unsubscribe()
    clearTimeout(this.#retryTimer)
    clearInterval(this.#poll)
    this.#expiry.stop()
    this.#stopped.abort()
    this.#link = null
    await Promise.all([this.drained(), this.#reader.stop()])
  }

  /** WhatsApp's acknowledgement or refusal of a message, expected or late. */
  acknowledged(ack: Acknowledgement): void {
    if (!this.#transmitter.acknowledged(ack)) this.#recordLate(ack).catch(error => this.#failed(error))
  }

  /** A recorded receipt counts as an acknowledgement (contract §3). */
  noteReceipt(whatsappIds: readonly string[]): void {
    for (const whatsappId of whatsappIds) {
      const ack = { whatsappId, error: undefined, devicesHash: undefined }
      if (!this.#transmitter.acknowledged(ack)) this.#removeWaiting(whatsappId)
    }
  }

  restrictionChanged(): void {
    this.#queue.release()
    this.#claimSoon()
    this.#reader.read()
  }

  /** An incoming message from this number was recorded, so it is no longer a stranger. */
  noteContact(number: string): void {
    if (this.#queue.deferredChats === 0) return
    this.#queue.release(number)
    this.#reader.read()
  }

  // ── Claim ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Claims within the same batch window are made together. */
  #claimSoon(): void {
    if (this.#claimRequested) return
    this.#claimRequested = true
    this.#options.batcher.run(() => {
      this.#claimRequested = false
      this.#claim()
    })
  }

  /** Sends the next message of every chat that may send now, as far as the limits allow. Chats that failed come last. */
  #claim(): void {
    clearTimeout(this.#retryTimer)
    if (!this.#link?.isOpen || this.#stopped.signal.aborted) return
    const now = performance.now()
    let nextAt = Number.POSITIVE_INFINITY
    const failing: QueuedChat[] = []
    for (const chat of this.#queue.chats()) {
      if (!this.#hasCapacity) return
      if (chat.isBusy) continue
      if (chat.notBefore > now) nextAt = Math.min(nextAt, chat.notBefore)
      else if (chat.failures > 0) failing.push(chat)
      else this.#claimNext(chat, this.#link)
    }
    for (const chat of failing) {
      if (!this.#hasCapacity) return
      this.#claimNext(chat, this.#link)
    }
    if (nextAt < Number.POSITIVE_INFINITY) this.#retryTimer = setTimeout(() => this.#claim(), nextAt - now)
  }

  get #hasCapacity(): boolean {
    return this.#inFlight.hasCapacity && this.#records.size < MAX_RECORDS
  }

  #claimNext(chat: QueuedChat, link: SendingLink): void {
    const [message] = chat.messages
    if (!message) return
    chat.claim(message)
    this.#reader.noteClaim()
    const releaseSlot = this.#inFlight.take()
    const sent = this.#send(message, link).finally(() => {
      this.#queue.unclaim(message)
      releaseSlot()
      this.#sends.delete(message.whatsappId)
      if (this.#queue.chatOf(message)) this.#reader.read()
      else this.#reader.readSoon()
      this.#claimSoon()
    })
    this.#sends.set(message.whatsappId, sent)
  }

  // ── Send ──────────────────────────────────────────────────────────────────────────────────────────────────────

  async #send(message: QueuedMessage, link: SendingLink): Promise<void> {
    const startedAt = performance.now()
    try {
      const outcome = await this.#transmitter.send(message, link)
      this.#record(message, link, outcome, Math.round(performance.now() - startedAt))
    } catch (error) {
      this.#postpone(message)
      this.#failed(error)
    }
  }

  // ── Record ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The next message of the chat is sent while a final outcome is stored. */
  #record(message: QueuedMessage, link: SendingLink, outcome: SendOutcome, durationMs: number): void {
    if (outcome.kind === 'not_next') return
    const { store, lease, now, logger } = this.#options
    const { whatsappId } = message
    const facts = { instanceId: lease.instanceId, messageId: message.id, whatsappId, durationMs }
    if (outcome.kind === 'restricted') {
      // If the restriction has ended since, the message is sent at once.
      if (this.#isRestricted) this.#deferStranger(message, outcome.numbers)
      return
    }
    if (outcome.kind === 'unanswered') {
      // No pause if the recipient's devices must be queried again, or if there is a new link.
      if (outcome.why !== 'stale_devices' && link === this.#link) this.#postpone(message)
      logger.info({ ...facts, why: outcome.why }, 'message.unanswered')
      return
    }
    this.#queue.settle(message)
    if (outcome.kind === 'acknowledged') {
      this.#storeOutcome(message, () => store.messages.recordProgress(lease, whatsappId, 'sent', now()))
      logger.info(facts, 'message.sent')
    } else {
      const { failure } = outcome
      this.#storeOutcome(message, () => store.messages.recordFailure(lease, message, failure, now()))
      logger.info({ ...facts, code: failure.code }, 'message.failed')
    }
  }

  #storeOutcome(message: QueuedMessage, work: () => Promise<unknown>): void {
    const recorded = this.#options.batcher
      .runAsync(() => this.#stored(work))
      .then(() => this.#queue.remove(message))
      .catch(error => this.#failed(error))
      .finally(() => {
        this.#records.delete(message.whatsappId)
        if (this.#records.size === MAX_RECORDS - 1) this.#claimSoon()
      })
    this.#records.set(message.whatsappId, recorded)
  }

  #deferStranger(message: QueuedMessage, numbers: readonly string[]): void {
    const chat = this.#queue.chatOf(message)
    if (chat) this.#queue.defer(chat.key, { numbers })
    // The recipient may have written between the first check and `defer`. No other call would release the chat.
    this.#addresses
      .findContactStatus(message.to)
      .then(({ known }) => {
        if (known) this.noteContact(message.to)
      })
      .catch(error => this.#failed(error))
  }

  get #isRestricted(): boolean {
    return this.#options.isRestricted?.() ?? false
  }

  #postpone(message: QueuedMessage): void {
    const chat = this.#queue.chatOf(message)
    if (!chat) return
    const pauseMs = backoffMs(chat.failures, FIRST_RETRY_MS, MAX_RETRY_MS)
    chat.failures += 1
    // Setting the wall clock back must not make the pause longer.
    chat.notBefore = performance.now() + pauseMs
    if (this.#queue.isFull) this.#queue.defer(chat.key, { until: chat.notBefore })
  }

  /** An acknowledgement after the timeout still counts. A refusal fails the message, even if it is already `sent`. */
  async #recordLate({ whatsappId, error }: Acknowledgement): Promise<void> {
    const { store, lease, now } = this.#options
    if (error === STALE_DEVICES) return
    await this.#stored(() =>
      error === undefined
        ? store.messages.recordProgress(lease, whatsappId, 'sent', now())
        : store.messages.recordFailure(lease, { whatsappId }, messageFailure('rejected_by_whatsapp', error), now()),
    )
    this.#removeWaiting(whatsappId)
  }

  /** The outcome is recorded, so a waiting message is not sent again and the next one of its chat follows. */
  #removeWaiting(whatsappId: string): void {
    const message = this.#queue.findWaiting(whatsappId)
    if (!message) return
    this.#queue.remove(message)
    this.#claimSoon()
  }

  #stored<T>(work: () => Promise<T>): Promise<T> {
    return untilStored(work, this.#stopped.signal)
  }

  #failed(error: unknown): void {
    if (!this.#stopped.signal.aborted) this.#options.onFailed(error)
  }
}
