import type { Logger } from 'pino'
import { messageFailure } from '../../domain/message.ts'
import { backoffMs } from '../../kit/backoff.ts'
import type { Gatherer } from '../../kit/batcher.ts'
import type { Turns } from '../../kit/event-loop-budget.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { Acknowledgement } from '../baileys/link.ts'
import { AddressBook } from './address-book.ts'
import { Expiry } from './expiry.ts'
import type { GroupDirectory } from './group-directory.ts'
import { Room } from './in-flight-limit.ts'
import { QueueReader } from './queue-reader.ts'
import type { QueuedChat } from './queued-chat.ts'
import { Outbox } from './send-queue.ts'
import { type SendingLink, type SendOutcome, STALE_DEVICES, Transmitter } from './transmitter.ts'

/** Chats written to at the same time, but for those that WhatsApp keeps waiting. */
const MAX_IN_FLIGHT = 24
/** A send that takes longer waits for WhatsApp, and makes room for others. */
const BRISK_MS = 500
/** Chats in hand at the same time: more wait until one of these is answered, or its time is up. */
const MAX_SENDS = 512
/** Outcomes being recorded at the same time; a store that is slower than WhatsApp slows the sending down. */
const MAX_RECORDS = 256
/** Behind the hints, which may be lost. */
const LOOK_EVERY_MS = 5_000
const FIRST_RETRY_MS = 2_000
const LONGEST_RETRY_MS = 300_000

export interface SenderOptions {
  lease: Lease
  store: Pick<Store, 'messages' | 'numbers' | 'hints'>
  groups: GroupDirectory
  gatherer: Gatherer
  turns: Turns
  messageTtlMs: number
  ackTimeoutMs?: number | undefined
  /** Whether WhatsApp lets us write to nobody new. */
  isRestricted?: () => boolean
  /** How long WhatsApp took to acknowledge a message. */
  onAcknowledged?: (latencyMs: number) => void
  logger: Logger
  now: () => number
  /** A write was refused by the fence, or went wrong in a way that nobody foresaw. */
  onFailed(error: unknown): void
}

/**
 * Sends the instance's queue for as long as its lease lasts, whether a link is open or not: per chat one message at a
 * time in the order accepted, many chats at once. A kill at any step leaves the row queued, and the message goes
 * out again under the same id with the same content.
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #addresses: AddressBook
  readonly #outbox = new Outbox()
  readonly #stopped = new AbortController()
  readonly #reader: QueueReader
  readonly #room: Room
  readonly #expiry: Expiry
  readonly #transmitter: Transmitter
  /** Under way, by WhatsApp id. */
  readonly #sends = new Map<string, Promise<void>>()
  /** Outcomes on their way into the store, by WhatsApp id. */
  readonly #records = new Map<string, Promise<void>>()
  #link: SendingLink | null = null
  #startWanted = false
  /** Until a chat may be tried again. */
  #timer: NodeJS.Timeout | undefined
  #poll: NodeJS.Timeout | undefined
  #unsubscribe: () => void = () => undefined

  constructor(options: SenderOptions) {
    this.#options = options
    const { lease, store, groups, now } = options
    const stored = <T>(work: () => Promise<T>) => this.#stored(work)
    const onFailed = (error: unknown) => this.#failed(error)
    this.#addresses = new AddressBook({ lease, numbers: store.numbers, groups, now, stored })
    this.#room = new Room({
      brisk: MAX_IN_FLIGHT,
      inAll: MAX_SENDS,
      briskMs: BRISK_MS,
      onFreed: () => this.#startSoon(),
    })
    this.#reader = new QueueReader({
      outbox: this.#outbox,
      readPage: (limit, afterSeq) => stored(() => store.messages.listQueued(lease.instanceId, limit, afterSeq)),
      canSend: () => this.#link?.isOpen === true,
      onRead: () => this.#startSends(),
      onFailed,
    })
    this.#expiry = new Expiry({
      ...options,
      isInHand: whatsappId => this.#sends.has(whatsappId) || this.#records.has(whatsappId),
      onExpired: message => this.#outbox.end(message),
      onFailed,
    })
    this.#transmitter = new Transmitter({
      ...options,
      addresses: this.#addresses,
      expiry: this.#expiry,
      isRestricted: () => this.#isRestricted,
      claim: (message, address) => this.#outbox.claim(message, address),
      stored,
      onFailed,
    })
  }

  start(): void {
    const { store, lease } = this.#options
    const from = store.hints.shared ? 'back' : 'on'
    this.#unsubscribe = store.hints.on('queued', (_, __, to) => this.#reader.look(from, to), lease.instanceId)
    this.#poll = setInterval(() => this.#lookAgain(), LOOK_EVERY_MS)
    this.#expiry.start()
    this.#reader.look('start')
  }

  /** What is queued goes out through this link from now on. */
  attach(link: SendingLink): void {
    this.#link = link
    this.#outbox.tryAllAgain()
    this.#reader.look('start')
    // Nothing is read, and so nothing started, while memory is full of what waited for this link.
    this.#startSoon()
  }

  /** No link any more; sends in flight end with it. */
  detach(): void {
    this.#link = null
  }

  /** Resolves when nothing is in flight and every outcome is recorded. It must be detached first. */
  async drained(): Promise<void> {
    await Promise.all(this.#sends.values())
    await Promise.all(this.#records.values())
  }

  /** Resolves when no send is in flight. The link must be closed first. */
  async stop(): Promise<void> {
    this.#unsubscribe()
    clearTimeout(this.#timer)
    clearInterval(this.#poll)
    this.#expiry.stop()
    this.#stopped.abort()
    this.#link = null
    await Promise.all([...this.#sends.values(), this.#reader.stop()])
    await Promise.all(this.#records.values())
  }

  /** WhatsApp's acknowledgement or refusal of a message, expected or late. */
  acknowledged(ack: Acknowledgement): void {
    if (!this.#transmitter.acknowledged(ack)) this.#guard(this.#recordLate(ack))
  }

  /** A receipt, recorded already, counts as an acknowledgement (contract §3). */
  received(whatsappIds: readonly string[]): void {
    for (const whatsappId of whatsappIds) {
      const ack = { whatsappId, error: undefined, devicesHash: undefined }
      if (!this.#transmitter.acknowledged(ack)) this.#endWaiting(whatsappId)
    }
  }

  /** Whom we may write to has changed. */
  restrictionChanged(): void {
    this.#outbox.release()
    this.#startSoon()
    this.#reader.read()
  }

  /** Somebody wrote to us, which is recorded: an answer approaches nobody new. */
  heardFrom(number: string): void {
    if (this.#outbox.heldChats === 0) return
    this.#outbox.release(number)
    this.#reader.read()
  }

  #lookAgain(): void {
    this.#reader.poll()
    this.#startSoon()
  }

  /** What became of it is known and recorded: it need not go out again, and the next one to its chat can. */
  #endWaiting(whatsappId: string): void {
    const message = this.#outbox.findWaiting(whatsappId)
    if (!message) return
    this.#outbox.end(message)
    this.#startSoon()
  }

  /** Messages that are sent together are prepared and encrypted together. */
  #startSoon(): void {
    if (this.#startWanted) return
    this.#startWanted = true
    this.#options.gatherer.run(() => {
      this.#startWanted = false
      this.#startSends()
    })
  }

  #startSends(): void {
    clearTimeout(this.#timer)
    if (!this.#link?.isOpen || this.#stopped.signal.aborted) return
    const now = performance.now()
    let nextAt = Number.POSITIVE_INFINITY
    const failing: QueuedChat[] = []
    for (const chat of this.#outbox.chats()) {
      if (!this.#hasRoom) return
      if (chat.isBusy) continue
      if (chat.notBefore > now) nextAt = Math.min(nextAt, chat.notBefore)
      else if (chat.failures > 0) failing.push(chat)
      else this.#start(chat, this.#link)
    }
    for (const chat of failing) {
      if (!this.#hasRoom) return
      this.#start(chat, this.#link)
    }
    if (nextAt < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#startSends(), nextAt - now)
  }

  get #hasRoom(): boolean {
    return this.#room.isLeft && this.#records.size < MAX_RECORDS
  }

  #start(chat: QueuedChat, link: SendingLink): void {
    const [message] = chat.messages
    if (!message) return
    chat.begin(message)
    this.#reader.noteStarted()
    const leaveRoom = this.#room.take()
    const startedAt = performance.now()
    const send = this.#transmitter
      .send(message, link)
      .then(outcome => this.#settle(message, link, outcome, Math.round(performance.now() - startedAt)))
      .catch(error => {
        this.#postpone(message)
        this.#failed(error)
      })
      .finally(() => {
        this.#outbox.finish(message)
        leaveRoom()
        this.#sends.delete(message.whatsappId)
        if (this.#outbox.chatOf(message)) this.#reader.read()
        else this.#reader.readSoon()
        this.#startSoon()
      })
    this.#sends.set(message.whatsappId, send)
  }

  /** What is settled is recorded beside the next send: killed in between, it goes out again under the same id. */
  #settle(message: QueuedMessage, link: SendingLink, outcome: SendOutcome, durationMs: number): void {
    if (outcome.kind === 'overtaking') return
    const { store, lease, now, logger } = this.#options
    const { whatsappId } = message
    const facts = { instanceId: lease.instanceId, messageId: message.id, whatsappId, durationMs }
    if (outcome.kind === 'held') {
      // It may be over by now; then the recipient's messages go on.
      if (this.#isRestricted) this.#hold(message, outcome.numbers)
      return
    }
    if (outcome.kind === 'unanswered') {
      // New devices are asked for at once, and a new link is tried at once.
      if (outcome.why !== 'stale_devices' && link === this.#link) this.#postpone(message)
      logger.info({ ...facts, why: outcome.why }, 'message.unanswered')
      return
    }
    this.#outbox.pass(message)
    if (outcome.kind === 'acknowledged') {
      this.#record(message, () => store.messages.recordProgress(lease, whatsappId, 'sent', now()))
      logger.info(facts, 'message.sent')
    } else {
      const { failure } = outcome
      this.#record(message, () => store.messages.recordFailure(lease, message, failure, now()))
      logger.info({ ...facts, code: failure.code }, 'message.failed')
    }
  }

  #hold(message: QueuedMessage, numbers: readonly string[]): void {
    const chat = this.#outbox.chatOf(message)
    if (chat) this.#outbox.hold(chat.key, { numbers })
    // The recipient may have written since we looked, and nobody would tell again.
    this.#guard(
      this.#addresses.findStanding(message.to).then(({ known }) => {
        if (known) this.heardFrom(message.to)
      }),
    )
  }

  get #isRestricted(): boolean {
    return this.#options.isRestricted?.() ?? false
  }

  #record(message: QueuedMessage, work: () => Promise<unknown>): void {
    const recorded = this.#options.gatherer
      .ask(() => this.#stored(work))
      .then(() => this.#outbox.end(message))
      .catch(error => this.#failed(error))
      .finally(() => {
        this.#records.delete(message.whatsappId)
        if (this.#records.size === MAX_RECORDS - 1) this.#startSoon()
      })
    this.#records.set(message.whatsappId, recorded)
  }

  #postpone(message: QueuedMessage): void {
    const chat = this.#outbox.chatOf(message)
    if (!chat) return
    const pauseMs = backoffMs(chat.failures, FIRST_RETRY_MS, LONGEST_RETRY_MS)
    chat.failures += 1
    // A wall clock that is set back would make the pause longer.
    chat.notBefore = performance.now() + pauseMs
    if (this.#outbox.isFull) this.#outbox.hold(chat.key, { until: chat.notBefore })
  }

  /** An acknowledgement that nobody waits for any more still tells the truth; a refusal fails what was sent. */
  async #recordLate({ whatsappId, error }: Acknowledgement): Promise<void> {
    const { store, lease, now } = this.#options
    if (error === STALE_DEVICES) return
    await this.#stored(() =>
      error === undefined
        ? store.messages.recordProgress(lease, whatsappId, 'sent', now())
        : store.messages.recordFailure(lease, { whatsappId }, messageFailure('rejected_by_whatsapp', error), now()),
    )
    this.#endWaiting(whatsappId)
  }

  #stored<T>(work: () => Promise<T>): Promise<T> {
    return untilStored(work, this.#stopped.signal)
  }

  #guard(work: Promise<unknown>): void {
    work.catch(error => this.#failed(error))
  }

  #failed(error: unknown): void {
    if (!this.#stopped.signal.aborted) this.#options.onFailed(error)
  }
}
