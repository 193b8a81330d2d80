import type { Logger } from 'pino'
import { type MessageFailure, messageFailure } from '../domain/message.ts'
import { parseRecipient } from '../domain/recipient.ts'
import type { Lease, PreparedMessage, QueuedMessage, Store } from '../store/store.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { AddressBook } from './address-book.ts'
import { encodeText } from './content.ts'
import type { Gatherer } from './gatherer.ts'
import type { GroupDirectory } from './group-directory.ts'
import type { Acknowledgement, Link } from './link.ts'
import { MemoryCache } from './memory-cache.ts'
import { type Lane, Outbox } from './outbox.ts'
import { untilStored } from './patience.ts'
import { QueueReader } from './queue-reader.ts'
import { Room } from './room.ts'
import { QUERY_TIMEOUT_MS } from './socket-options.ts'
import type { Turns } from './turns.ts'

/** Recipients written to at the same time, but for those that WhatsApp keeps waiting. */
const MAX_IN_FLIGHT = 24
/** An attempt that takes longer waits for WhatsApp, and makes room for others. */
const BRISK_MS = 500
/** Recipients in hand at the same time: more wait until one of these is answered, or its time is up. */
const MAX_ATTEMPTS = 512
/** Outcomes being recorded at the same time; a store that is slower than WhatsApp slows the sending down. */
const MAX_RECORDS = 256
/** Rows looked through at a time for messages that are too old. */
const EXPIRE_PAGE = 256
/** Behind the hints, which may be lost. */
const LOOK_EVERY_MS = 5_000
const EXPIRE_EVERY_MS = 30_000
const HASHES = 2_000
const FIRST_RETRY_MS = 2_000
const LONGEST_RETRY_MS = 300_000
/** No longer than a query is waited for. */
const DEFAULT_ACK_TIMEOUT_MS = QUERY_TIMEOUT_MS

/** WhatsApp's code for a stanza that names devices the recipient no longer has (Baileys `SERVER_ERROR_CODES`). */
const STALE_DEVICES = 479

/** What came of handing one message to WhatsApp. Every branch is finished by `#settle`. */
export type SendOutcome =
  | { kind: 'acknowledged' }
  /** Try again, under the same id with the same content. */
  | { kind: 'unanswered'; why: string }
  | { kind: 'refused'; failure: MessageFailure }
  /** WhatsApp lets us write to nobody new for now: not tried. */
  | { kind: 'held'; numbers: readonly string[] }

/** An attempt's first half: where the message goes, or why it cannot. */
type Addressed = { kind: 'ready'; prepared: PreparedMessage } | Extract<SendOutcome, { kind: 'unanswered' | 'refused' }>

export type SendingLink = Pick<
  Link,
  'isOpen' | 'closed' | 'write' | 'lookUp' | 'queryGroup' | 'isMember' | 'forgetDevices'
>

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
 * Sends the instance's queue for as long as its lease lasts, whether a link is open or not: per recipient one message at a
 * time in the order accepted, many recipients at once. A kill at any step leaves the row queued, and the message goes
 * out again under the same id with the same content.
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #addresses: AddressBook
  readonly #outbox = new Outbox()
  readonly #stopped = new AbortController()
  readonly #reader: QueueReader
  readonly #room: Room
  readonly #acknowledgements = new Acknowledgements()
  /** Messages that WhatsApp refused once for stale devices: the second time is final. */
  readonly #retriedDevices = new Set<string>()
  /** What WhatsApp told last of a recipient's devices, by address. */
  readonly #devicesHashes = new MemoryCache(HASHES)
  /** Under way, by WhatsApp id. */
  readonly #attempts = new Map<string, Promise<void>>()
  /** Outcomes on their way into the store, by WhatsApp id. */
  readonly #records = new Map<string, Promise<void>>()
  #link: SendingLink | null = null
  #startWanted = false
  #timer: NodeJS.Timeout | undefined
  #timers: NodeJS.Timeout[] = []
  #unsubscribe: () => void = () => undefined

  constructor(options: SenderOptions) {
    this.#options = options
    const { lease, store, groups, now } = options
    const stored = <T>(work: () => Promise<T>) => this.#stored(work)
    this.#addresses = new AddressBook({ lease, numbers: store.numbers, groups, now, stored })
    this.#room = new Room({
      brisk: MAX_IN_FLIGHT,
      inAll: MAX_ATTEMPTS,
      briskMs: BRISK_MS,
      onFreed: () => this.#startSoon(),
    })
    this.#reader = new QueueReader({
      outbox: this.#outbox,
      readPage: (limit, afterSeq) => stored(() => store.messages.listQueued(lease.instanceId, limit, afterSeq)),
      canSend: () => this.#link?.isOpen === true,
      onRead: () => this.#startLanes(),
      now,
      onFailed: error => this.#failed(error),
    })
  }

  start(): void {
    const { store, lease, messageTtlMs } = this.#options
    const onQueued = () => this.#reader.look(store.hints.shared ? 'back' : 'on')
    this.#unsubscribe = store.hints.on('queued', onQueued, lease.instanceId)
    const expireEveryMs = Math.min(EXPIRE_EVERY_MS, Math.max(messageTtlMs / 10, 100))
    this.#timers = [
      setInterval(() => this.#reader.poll(), LOOK_EVERY_MS),
      setInterval(() => this.#guard(this.#expire()), expireEveryMs),
    ]
    this.#reader.look('start')
  }

  /** What is queued goes out through this link from now on. */
  attach(link: SendingLink): void {
    this.#link = link
    this.#outbox.tryAllAgain()
    this.#reader.look('start')
  }

  /** No link any more; attempts in flight end with it. */
  detach(): void {
    this.#link = null
  }

  /** Resolves when no attempt is in flight. The link must be closed first. */
  async stop(): Promise<void> {
    this.#unsubscribe()
    clearTimeout(this.#timer)
    for (const timer of this.#timers) clearInterval(timer)
    this.#stopped.abort()
    this.#link = null
    await Promise.all([...this.#attempts.values(), this.#reader.stop()])
    await Promise.all(this.#records.values())
  }

  /** WhatsApp's acknowledgement or refusal of a message, expected or late. */
  acknowledged(ack: Acknowledgement): void {
    if (!this.#acknowledgements.give(ack)) this.#guard(this.#recordLate(ack))
  }

  /** A receipt, recorded already, counts as an acknowledgement (decisions §3). */
  received(whatsappIds: readonly string[]): void {
    for (const whatsappId of whatsappIds) {
      const ack = { whatsappId, error: undefined, devicesHash: undefined }
      if (!this.#acknowledgements.give(ack)) this.#endWaiting(whatsappId)
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
    if (!this.#outbox.holdsAny) return
    this.#outbox.release(number)
    this.#reader.read()
  }

  /** What became of it is known and recorded: it need not go out again, and the next one to its recipient can. */
  #endWaiting(whatsappId: string): void {
    const message = this.#outbox.findWaiting(whatsappId)
    if (!message) return
    this.#outbox.end(message)
    this.#startSoon()
  }

  /** Lanes that start together prepare and encrypt together. */
  #startSoon(): void {
    if (this.#startWanted) return
    this.#startWanted = true
    this.#options.gatherer.run(() => {
      this.#startWanted = false
      this.#startLanes()
    })
  }

  #startLanes(): void {
    clearTimeout(this.#timer)
    if (!this.#link?.isOpen || this.#stopped.signal.aborted) return
    const now = this.#options.now()
    let nextAt = Number.POSITIVE_INFINITY
    const failing: Lane[] = []
    for (const lane of this.#outbox.lanes()) {
      if (!this.#hasRoom) return
      if (lane.busy) continue
      if (lane.notBefore > now) nextAt = Math.min(nextAt, lane.notBefore)
      else if (lane.failures > 0) failing.push(lane)
      else this.#start(lane, this.#link)
    }
    for (const lane of failing) {
      if (!this.#hasRoom) return
      this.#start(lane, this.#link)
    }
    if (nextAt < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#startLanes(), nextAt - now)
  }

  get #hasRoom(): boolean {
    return this.#room.isLeft && this.#records.size < MAX_RECORDS
  }

  #start(lane: Lane, link: SendingLink): void {
    const [message] = lane.messages
    if (!message) return
    lane.busy = true
    this.#reader.noteStarted()
    const leaveRoom = this.#room.take()
    const startedAt = performance.now()
    const attempt = this.#attempt(message, link)
      .then(outcome => this.#settle(lane, message, link, outcome, Math.round(performance.now() - startedAt)))
      .catch(error => {
        this.#postpone(lane)
        this.#failed(error)
      })
      .finally(() => {
        lane.busy = false
        leaveRoom()
        this.#attempts.delete(message.whatsappId)
        if (lane.messages.length === 0) this.#reader.readSoon()
        else this.#reader.read()
        this.#startSoon()
      })
    this.#attempts.set(message.whatsappId, attempt)
  }

  async #attempt(message: QueuedMessage, link: SendingLink): Promise<SendOutcome> {
    await this.#options.turns.take()
    if (this.#isTooOld(message)) return this.#tooOld(message)
    if (this.#isRestricted) {
      const { known, numbers } = await this.#addresses.findStanding(message.to)
      if (!known) return { kind: 'held', numbers }
    }
    const addressed = message.prepared
      ? { kind: 'ready' as const, prepared: message.prepared }
      : await this.#prepare(message, link)
    if (addressed.kind !== 'ready') return addressed
    const { prepared } = addressed
    const { address, content } = prepared
    const recorded = message.prepared ? Promise.resolve() : this.#recordPrepared(message, prepared)
    // The listener is there before the first byte is: the acknowledgement may come before `write` returns.
    const ackTimeoutMs = this.#options.ackTimeoutMs ?? DEFAULT_ACK_TIMEOUT_MS
    const awaited = this.#acknowledgements.waitFor(message.whatsappId, link.closed, ackTimeoutMs)
    const handedOverAt = performance.now()
    try {
      // Killed in here: the row is queued, and prepared if anything was written; the message goes out again as it is.
      await Promise.race([link.write(address, content, message.whatsappId, recorded), awaited.answer])
    } catch (error) {
      awaited.giveUp()
      return { kind: 'unanswered', why: nameOf(error) }
    }
    const ack = await awaited.answer
    if (!ack) return { kind: 'unanswered', why: 'no_acknowledgement' }
    this.#options.onAcknowledged?.(Math.round(performance.now() - handedOverAt))
    return this.#judge(message, prepared, ack, link)
  }

  /** Look-up and content. */
  async #prepare(message: QueuedMessage, link: SendingLink): Promise<Addressed> {
    const found = await this.#addresses.find(message.to, link)
    if (found.kind !== 'found') return found
    return { kind: 'ready', prepared: { address: found.address, content: encodeText(message.text) } }
  }

  /** Resolves once this is what is stored, so that it may be written to the socket. */
  #recordPrepared(message: QueuedMessage, prepared: PreparedMessage): Promise<void> {
    const { store, lease } = this.#options
    const recorded = this.#stored(() => store.messages.recordPrepared(lease, message.id, prepared)).then(stored => {
      message.prepared = stored
      // An earlier attempt was stored after all: the next one goes out with its content.
      if (!Buffer.from(stored.content).equals(prepared.content)) throw new PreparedBefore()
    })
    recorded.catch(error => {
      if (!(error instanceof PreparedBefore)) this.#failed(error)
    })
    return recorded
  }

  async #judge(
    message: QueuedMessage,
    prepared: PreparedMessage,
    ack: Acknowledgement,
    link: SendingLink,
  ): Promise<SendOutcome> {
    if (ack.error === STALE_DEVICES || this.#tellsOfDevices(prepared.address, ack.devicesHash)) {
      await link.forgetDevices(prepared.address).catch(() => undefined)
      this.#options.groups.forget(prepared.address)
    }
    if (ack.error === undefined) return { kind: 'acknowledged' }
    if (ack.error === STALE_DEVICES && !this.#retriedDevices.has(message.whatsappId)) {
      this.#retriedDevices.add(message.whatsappId)
      return { kind: 'unanswered', why: 'stale_devices' }
    }
    // 463 above all: to try again counts as another approach and makes the restriction worse.
    return { kind: 'refused', failure: await this.#whyRefused(prepared.address, ack.error, link) }
  }

  /** With which code WhatsApp refuses a message to a group that we have left is not known; what it says of the group is. */
  async #whyRefused(address: string, code: number, link: SendingLink): Promise<MessageFailure> {
    const { groups } = this.#options
    if (parseRecipient(address)?.kind === 'group') {
      groups.forget(address)
      if ((await groups.find(address, link)).kind === 'not_member') return messageFailure('not_a_group_member')
    }
    return messageFailure('rejected_by_whatsapp', code)
  }

  /** The same hash is told again with every message, by some networks always. */
  #tellsOfDevices(address: string, hash: string | undefined): boolean {
    if (hash === undefined || hash === this.#devicesHashes.get(address)) return false
    this.#devicesHashes.set(address, hash)
    return true
  }

  /** What is settled is recorded beside the next attempt: killed in between, it goes out again under the same id. */
  #settle(lane: Lane, message: QueuedMessage, link: SendingLink, outcome: SendOutcome, durationMs: number): void {
    const { store, lease, now, logger } = this.#options
    const { whatsappId } = message
    const facts = { instanceId: lease.instanceId, messageId: message.id, whatsappId, durationMs }
    if (outcome.kind === 'held') {
      // It may be over by now; then the lane goes on.
      if (this.#isRestricted) this.#hold(message, outcome.numbers)
      return
    }
    if (outcome.kind === 'unanswered') {
      // New devices are asked for at once, and a new link is tried at once.
      if (outcome.why !== 'stale_devices' && link === this.#link) this.#postpone(lane)
      logger.info({ ...facts, why: outcome.why }, 'message.unanswered')
      return
    }
    this.#outbox.pass(message)
    this.#retriedDevices.delete(whatsappId)
    if (outcome.kind === 'acknowledged') {
      this.#record(message, () => store.messages.recordProgress(lease, whatsappId, 'sent', now()))
      logger.info(facts, 'message.sent')
    } else {
      const { failure } = outcome
      this.#record(message, () => store.messages.recordFailure(lease, whatsappId, failure, now()))
      logger.info({ ...facts, code: failure.code }, 'message.failed')
    }
  }

  #hold(message: QueuedMessage, numbers: readonly string[]): void {
    this.#outbox.hold(message.to, { numbers })
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

  #postpone(lane: Lane): void {
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** lane.failures, LONGEST_RETRY_MS)
    lane.failures += 1
    lane.notBefore = this.#options.now() + pauseMs
    if (this.#outbox.isFull) this.#outbox.hold(lane.to, { until: lane.notBefore })
  }

  /** An acknowledgement that nobody waits for any more still tells the truth; a refusal fails what was sent. */
  async #recordLate({ whatsappId, error }: Acknowledgement): Promise<void> {
    const { store, lease, now } = this.#options
    if (error === STALE_DEVICES) return
    await this.#stored(() =>
      error === undefined
        ? store.messages.recordProgress(lease, whatsappId, 'sent', now())
        : store.messages.recordFailure(lease, whatsappId, messageFailure('rejected_by_whatsapp', error), now()),
    )
    this.#endWaiting(whatsappId)
  }

  /** Fails what is too old, oldest first, also while nothing is connected. */
  async #expire(): Promise<void> {
    const { store, lease, now, logger } = this.#options
    for (;;) {
      const rows = await store.messages.listQueued(lease.instanceId, EXPIRE_PAGE)
      const inHand = (id: string) => this.#attempts.has(id) || this.#records.has(id)
      const old = rows.filter(message => this.#isTooOld(message) && !inHand(message.whatsappId))
      for (const message of old) {
        const { failure } = this.#tooOld(message)
        await store.messages.recordFailure(lease, message.whatsappId, failure, now())
        this.#outbox.end(message)
        logger.info({ instanceId: lease.instanceId, messageId: message.id, code: failure.code }, 'message.failed')
      }
      if (rows.length < EXPIRE_PAGE || old.length < rows.length) return
    }
  }

  #isTooOld(message: QueuedMessage): boolean {
    return this.#options.now() - message.createdAt >= this.#options.messageTtlMs
  }

  #tooOld(message: QueuedMessage): Extract<SendOutcome, { kind: 'refused' }> {
    return { kind: 'refused', failure: messageFailure(message.prepared ? 'unconfirmed' : 'expired') }
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

class PreparedBefore extends Error {
  override readonly name = 'PreparedBefore'
}

function nameOf(error: unknown): string {
  const { name, data, output } = (error ?? {}) as { name?: string; data?: unknown; output?: { statusCode?: number } }
  const code = typeof data === 'number' ? data : output?.statusCode
  return [name ?? 'error', code].filter(part => part !== undefined).join(' ')
}
