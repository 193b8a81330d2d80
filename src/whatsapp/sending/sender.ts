import type { Logger } from 'pino'
import type { IncomingMessage } from '../../domain/incoming-message.ts'
import type { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { Store } from '../../store/store.ts'
import type { Acknowledgement } from '../baileys/link.ts'
import { AddressBook } from './address-book.ts'
import { Claims, type Permit, SendLimit } from './claim.ts'
import { Composer } from './compose.ts'
import type { GroupDirectory } from './group-directory.ts'
import { NumberChecker } from './number-checker.ts'
import { Pacing } from './pacing.ts'
import { Expiry } from './queue/expiry.ts'
import { SendQueue } from './queue/send-queue.ts'
import { OutcomeRecorder } from './record.ts'
import { Schedule } from './schedule.ts'
import { type SendingLink, type SendOutcome, Transmitter, type TransmitterOptions } from './send.ts'
import { isStale, shareKeyAgain } from './stale.ts'
import { type OnSent, traceSend } from './trace-send.ts'
import { Typing } from './typing.ts'
import { type Files, Uploads } from './uploads.ts'

/** Finds new rows whose hint was lost. */
const POLL_INTERVAL_MS = 5_000

export interface SenderOptions {
  lease: Lease
  store: Pick<Store, 'messages' | 'numbers' | 'paces' | 'hints'>
  groups: GroupDirectory
  /** Null: this node has no storage for files. */
  files: Files | null
  eventLoopBudget: EventLoopBudget
  messageTtlMs: number
  ackTimeoutMs?: number | undefined
  /** In force while WhatsApp does not let the account write to strangers. */
  restriction: { readonly isInForce: boolean }
  health?: TransmitterOptions['health']
  onSent?: OnSent | undefined
  logger: Logger
  now: () => number
  /** A write was refused by the fence, or an unexpected error occurred. */
  onFailed(error: unknown): void
}

/**
 * Sends the instance's queue while its lease lasts. It continues across links. Each chat has one message in flight, in
 * the order of acceptance. Many chats send at the same time. The loop has the shape of the webhooks' lane: claim, send,
 * record.
 *
 * After a kill at any step the row is still queued. The message is sent again with the same ID and content.
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #addresses: AddressBook
  readonly #checker: NumberChecker
  readonly #queue: SendQueue
  readonly #stopped = new AbortController()
  readonly #claims: Claims
  readonly #limit: SendLimit
  readonly #expiry: Expiry
  readonly #transmitter: Transmitter
  readonly #recorder: OutcomeRecorder
  /** Sends in flight, by WhatsApp ID. */
  readonly #inFlight = new Map<string, Promise<void>>()
  #link: SendingLink | null = null
  #requestedClaim: NodeJS.Immediate | undefined
  /** Runs when the first of the waiting chats may be tried again. */
  #retryTimer: NodeJS.Timeout | undefined
  #poll: NodeJS.Timeout | undefined
  #unsubscribe: (() => void)[] = []
  readonly #schedule: Schedule
  readonly #typing: Typing
  readonly #pacing: Pacing

  constructor(options: SenderOptions) {
    this.#options = options
    const { lease, store, groups, now } = options
    const { signal } = this.#stopped
    this.#queue = new SendQueue({ rowsComeLate: store.hints.shared })
    const onFailed = this.#failed
    this.#addresses = new AddressBook({ lease, numbers: store.numbers, groups, now, signal })
    this.#checker = new NumberChecker({ ...options, addresses: this.#addresses, signal, onFailed })
    this.#claims = new Claims({
      lease,
      messages: store.messages,
      signal,
      sendQueue: this.#queue,
      canSend: () => this.#link?.isOpen === true,
      onPage: this.#claim,
      onFailed,
    })
    this.#limit = new SendLimit(this.#claimSoon)
    this.#pacing = new Pacing({
      lease,
      paces: store.paces,
      addresses: this.#addresses,
      queue: this.#queue,
      now,
      signal,
      onChange: this.#claimSoon,
      onRoom: () => this.#claims.read(),
      onFailed,
    })
    this.#expiry = new Expiry({
      ...options,
      pacing: this.#pacing,
      isInFlight: whatsappId => this.#inFlight.has(whatsappId) || this.#recorder.isRecording(whatsappId),
      onExpired: message => this.#queue.remove(message),
      onFailed,
    })
    this.#recorder = new OutcomeRecorder({
      ...options,
      messages: store.messages,
      signal,
      onRecorded: this.#remove,
      onFailed,
    })
    const uploads = new Uploads(options.files)
    const composer = new Composer({ ...options, uploads, outcomes: this.#recorder, signal })
    this.#transmitter = new Transmitter({
      ...options,
      addresses: this.#addresses,
      composer,
      pacing: this.#pacing,
      queue: this.#queue,
      signal,
      onFailed,
    })
    this.#schedule = new Schedule({ ...options, messages: store.messages, signal, onFailed })
    this.#typing = new Typing(this.#addresses, () => this.#link, onFailed)
  }

  start(): void {
    const { store, lease } = this.#options
    const { instanceId } = lease
    this.#unsubscribe = [
      store.hints.on('queued', (_, __, to) => this.#claims.requestRead('next', to), instanceId),
      store.hints.on('plans', () => this.#schedule.wake(), instanceId),
      store.hints.on('files', () => this.#filesChanged(), instanceId),
      this.#checker.start(),
      store.hints.on('pace', () => this.#pacing.load(), instanceId),
      store.hints.on('typing', (_, __, request = '') => this.#typing.show(request), instanceId),
    ]
    this.#poll = setInterval(() => {
      this.#claims.poll()
      this.#claimSoon()
    }, POLL_INTERVAL_MS)
    this.#pacing.start()
    this.#expiry.start()
    this.#schedule.start()
    this.#claims.requestRead('start')
  }

  /** A file may have become available. */
  #filesChanged(): void {
    this.#queue.wakeAwaitingFile()
    this.#claimSoon()
  }

  /** Sends through this link from now on. */
  attach(link: SendingLink): void {
    this.#link = link
    this.#checker.attach(link)
    this.#queue.resetBackoff()
    this.#claims.requestRead('start')
    // If memory is full of waiting messages, no read happens that would start a claim.
    this.#claimSoon()
  }

  /** Starts no new send. Sends in flight end when their link closes. */
  detach(): void {
    this.#link = null
    this.#checker.detach()
  }

  /** Resolves when nothing is in flight and every outcome is recorded. Call `detach` first. */
  async drained(): Promise<void> {
    await Promise.all(this.#inFlight.values())
    await this.#recorder.drained()
  }

  /** Resolves when nothing is in flight or being recorded. Close the link first. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#schedule.stop()
    this.#typing.stop()
    this.#pacing.stop()
    clearTimeout(this.#retryTimer)
    clearInterval(this.#poll)
    this.#expiry.stop()
    this.#stopped.abort()
    this.#link = null
    await Promise.all([this.drained(), this.#claims.stop()])
  }

  /** WhatsApp's acknowledgement or refusal of a message, expected or late. */
  acknowledged(ack: Acknowledgement): void {
    if (!this.#transmitter.acknowledged(ack)) this.#recordLate(ack).catch(this.#failed)
  }

  /** A recorded receipt counts as an acknowledgement (contract §3). */
  noteReceipt(whatsappIds: readonly string[]): void {
    for (const whatsappId of whatsappIds) {
      const ack = { whatsappId, chat: undefined, error: undefined, devicesHash: undefined }
      if (!this.#transmitter.acknowledged(ack)) this.#removeWaiting(whatsappId)
    }
  }

  restrictionChanged(): void {
    this.#queue.wakeDeferred()
    this.#claimSoon()
    this.#claims.read()
  }

  /** An incoming or written message was recorded: the other side is now a contact. Number and LID are one chat. */
  noteSender({ written, ...message }: Pick<IncomingMessage, 'from' | 'addressing' | 'lid' | 'written' | 'chat'>): void {
    const { addressing, lid } = message
    const from = written ? message.chat : message.from
    if (addressing === undefined && lid !== null) this.#queue.noteSame(from, lid)
    if (addressing !== 'lid' || lid === null) this.#pacing.noteContact(from)
    if (lid !== null) this.#pacing.noteContact(lid)
  }

  // ── Claim, send, record ───────────────────────────────────────────────────────────────────────────────────────

  /** Claims at most once per turn of the event loop, because a claim visits every chat. */
  readonly #claimSoon = (): void => {
    this.#requestedClaim ??= setImmediate(this.#claim)
  }

  /** If no permit is free, the next send or record to finish triggers another claim. @returns false if nothing can be sent */
  readonly #claim = (): boolean => {
    clearImmediate(this.#requestedClaim)
    this.#requestedClaim = undefined
    clearTimeout(this.#retryTimer)
    const link = this.#link
    if (!link?.isOpen || this.#stopped.signal.aborted) return false
    const now = performance.now()
    for (const message of this.#pacing.inOrder(this.#claims.ready(now, this.#limit))) {
      const permit = this.#recorder.isFull ? null : this.#limit.acquire(message)
      if (!permit) return true
      this.#claims.claim(message)
      this.#inFlight.set(message.whatsappId, this.#send(message, link, permit))
    }
    const { nextWakeAt } = this.#claims
    if (nextWakeAt < Number.POSITIVE_INFINITY) this.#retryTimer = setTimeout(this.#claim, nextWakeAt - now)
    return true
  }

  /** Sends, then records the outcome. The next message of the chat may be claimed while a final outcome is recorded. */
  async #send(message: QueuedMessage, link: SendingLink, permit: Permit): Promise<void> {
    const { onSent } = this.#options
    const startedAt = performance.now()
    try {
      const outcome = await this.#transmitter.send(message, link)
      const durationMs = Math.round(performance.now() - startedAt)
      if (onSent && message.traceparent) traceSend(onSent, message, message.traceparent, outcome, durationMs)
      this.#record(message, link, outcome, durationMs)
    } catch (error) {
      this.#claims.postpone(message)
      this.#failed(error)
    }
    this.#claims.release(message)
    this.#pacing.release(message)
    permit.release()
    this.#inFlight.delete(message.whatsappId)
    this.#claimSoon()
  }

  /** Records a final outcome. After any other outcome but `gone`, the message is tried again. */
  #record(message: QueuedMessage, link: SendingLink, outcome: SendOutcome, durationMs?: number): void {
    const { lease, logger } = this.#options
    const facts = { instanceId: lease.instanceId, messageId: message.id, whatsappId: message.whatsappId, durationMs }
    switch (outcome.kind) {
      case 'not_next':
        return
      case 'gone':
        this.#queue.remove(message)
        return
      case 'fetching':
        this.#claims.awaitFile(message)
        return
      case 'restricted':
        // If the restriction has ended in the meantime, the message is tried again without a delay.
        if (this.#options.restriction.isInForce) this.#pacing.deferStranger(message, outcome.numbers)
        return
      case 'paced':
        if (outcome.numbers !== null) this.#pacing.deferStranger(message, outcome.numbers)
        return
      case 'unanswered':
        // No pause if there is a new link.
        if (!outcome.atOnce && link === this.#link) this.#claims.postpone(message)
        logger.info({ ...facts, why: outcome.why }, 'message.unanswered')
        return
    }
    this.#queue.settle(message)
    this.#recorder.record(message, outcome)
    if (outcome.kind === 'acknowledged') logger.info(facts, 'message.sent')
    else logger.info({ ...facts, code: outcome.failure.code }, 'message.failed')
  }

  async #recordLate(ack: Acknowledgement): Promise<void> {
    const link = this.#link
    const refused = ack.error === undefined ? null : this.#queue.findWaiting(ack.whatsappId)
    if (isStale(ack.error, ack.chat)) {
      if (!refused?.prepared || !link) return
      const outcome = await this.#transmitter.toOutcome(refused, refused.prepared, ack, link)
      // Another attempt may have begun meanwhile. Its answer decides.
      const isWaiting = this.#queue.findWaiting(ack.whatsappId) === refused
      if (outcome.kind === 'refused' && isWaiting) this.#record(refused, link, outcome)
      return
    }
    if (refused?.prepared && link) shareKeyAgain(refused.prepared.address, link)
    await this.#recorder.recordLate(ack)
    this.#removeWaiting(ack.whatsappId)
  }

  #removeWaiting(whatsappId: string): void {
    const message = this.#queue.findWaiting(whatsappId)
    if (message) this.#remove(message)
  }

  /** The outcome is recorded: the message is not sent again, the next one of its chat follows, and the recipient may be a contact now. */
  readonly #remove = (message: QueuedMessage): void => {
    this.#queue.remove(message)
    this.#pacing.noteOutcome(message)
    this.#claimSoon()
  }

  readonly #failed = (error: unknown): void => {
    if (!this.#stopped.signal.aborted) this.#options.onFailed(error)
  }
}
