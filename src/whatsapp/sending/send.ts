import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Command } from '../../domain/conversation.ts'
import type { MessageId } from '../../domain/ids.ts'
import { expiryFailure, type MessageFailure, messageFailure } from '../../domain/message.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { PreparedMessage, QueuedMessage } from '../../store/messages/messages.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import { messageKey } from '../baileys/encode-content.ts'
import type { Acknowledgement, Link } from '../baileys/link.ts'
import { QUERY_TIMEOUT_MS } from '../baileys/socket-options.ts'
import type { AddressBook } from './address-book.ts'
import type { Composer } from './compose.ts'
import type { GroupDirectory } from './group-directory.ts'
import type { Paced, Pacing } from './pacing.ts'
import type { SendQueue } from './queue/send-queue.ts'
import { isStale, STALE_ADDRESSING, STALE_DEVICES, shareKeyAgain } from './stale.ts'
import type { ContentOutcome } from './uploads.ts'

const MAX_HASHES = 2_000
/** The file of an evicted one is uploaded again. */
const MAX_UPLOADED = 100
/** A retry that is evicted from this cache may be repeated once. */
const MAX_RETRIED = 2_000

/** The outcome of one attempt to send a message. The sender handles every kind. */
export type SendOutcome =
  | { kind: 'acknowledged' }
  /** To be tried again: after a pause, or `atOnce`. A message that was prepared keeps its content. */
  | { kind: 'unanswered'; why: string; atOnce?: true }
  | { kind: 'refused'; failure: MessageFailure }
  /** Not written: its file is still being fetched from its URL. */
  | { kind: 'fetching' }
  /** Deleted before it was ever written. */
  | { kind: 'gone' }
  /** Not written, because another message of the same chat goes first. */
  | { kind: 'not_next' }
  /** Not written: the account is restricted and the recipient is a stranger, who may write from one of `numbers` (or LIDs). */
  | { kind: 'restricted'; numbers: readonly string[] }
  /** Not written: the pace of the instance makes it wait. */
  | Paced

export type SendingLink = Pick<
  Link,
  | 'isOpen'
  | 'closed'
  | 'self'
  | 'write'
  | 'markRead'
  | 'type'
  | 'uploadFile'
  | 'lookUp'
  | 'queryGroup'
  | 'forgetDevices'
  | 'shareKeyAgain'
>

export interface TransmitterOptions {
  lease: Lease
  store: Pick<Store, 'messages'>
  addresses: AddressBook
  groups: GroupDirectory
  composer: Composer
  pacing: Pick<Pacing, 'take' | 'waitedUntil' | 'typingMs'>
  eventLoopBudget: EventLoopBudget
  queue: Pick<SendQueue, 'beginWrite'>
  messageTtlMs: number
  ackTimeoutMs?: number | undefined
  /** Whether WhatsApp does not let the account write to strangers. */
  restriction: { readonly isInForce: boolean }
  /** Receives the time from each write to WhatsApp's acknowledgement. */
  health?: { acknowledged(latencyMs: number): void } | undefined
  now: () => number
  logger: Pick<Logger, 'debug'>
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
  onFailed(error: unknown): void
}

/** Sends one message and waits for the acknowledgement: look-up, encoding, write to the socket, answer. */
export class Transmitter {
  readonly #options: TransmitterOptions
  /** Callbacks that receive WhatsApp's acknowledgement, by WhatsApp ID. */
  readonly #waiting = new Map<string, (ack: Acknowledgement | null) => void>()
  /** Retries because of `isStale`, by code and WhatsApp ID. The second refusal with the same code is final. */
  readonly #retriedStale = new BoundedMap<string, true>(MAX_RETRIED)
  /** Contents whose file is uploaded while the pace makes their messages wait again. Quotes and mentions may change meanwhile. */
  readonly #uploaded = new BoundedMap<MessageId, Uint8Array>(MAX_UPLOADED)
  /** The latest hash of each recipient's devices, by address. */
  readonly #devicesHashes = new BoundedMap<string, string>(MAX_HASHES)

  constructor(options: TransmitterOptions) {
    this.#options = options
  }

  async send(message: QueuedMessage, link: SendingLink): Promise<SendOutcome> {
    const { lease, eventLoopBudget, restriction, addresses, pacing, queue, composer } = this.#options
    await eventLoopBudget.take(lease.instanceId)
    // An earlier attempt may have been written without reaching the group, so the sender key is sent again.
    if (message.prepared) shareKeyAgain(message.prepared.address, link)
    // First, because whatever made the message fail would also make its commands fail, with another code.
    const obstacle = await composer.checkCommand(message)
    if (obstacle) return obstacle
    const failure = await this.#expiryFailure(message)
    if (failure) return { kind: 'refused', failure }
    if (restriction.isInForce) {
      const { known, numbers } = await addresses.findContactStatus(message.to)
      if (!known) return { kind: 'restricted', numbers }
    }
    const paced = message.prepared === null ? await pacing.take(message) : null
    if (paced) return paced
    const found = message.prepared
      ? { kind: 'found' as const, address: message.prepared.address }
      : await addresses.find(message.to, link)
    if (found.kind !== 'found') return found
    const { address } = found
    // Before an upload, so that the messages of a chat stay in their order and none is uploaded in vain.
    if (!queue.beginWrite(message, address)) return { kind: 'not_next' }
    const command = message.extras?.command
    if (command?.kind === 'read') return this.#markRead(message, command, address, link)
    const uploaded = this.#uploaded.get(message.id)
    const encoded: ContentOutcome = uploaded
      ? { kind: 'encoded', content: uploaded }
      : await composer.compose(message, address, link)
    if (encoded.kind !== 'encoded') return encoded
    const { content } = encoded
    if (message.file) {
      // An upload may take a long time.
      const late = await this.#expiryFailure(message)
      if (late) return { kind: 'refused', failure: late }
      const pacedAgain = await pacing.take(message)
      if (pacedAgain) {
        const { quote, mentions } = message.extras ?? {}
        if (pacedAgain.kind === 'paced' && !quote && !mentions) this.#uploaded.set(message.id, content)
        return pacedAgain
      }
      this.#uploaded.delete(message.id)
    }
    return this.#write(message, message.prepared ?? { address, content }, link)
  }

  /** Records the content before it is written, and waits for WhatsApp's acknowledgement. */
  async #write(message: QueuedMessage, prepared: PreparedMessage, link: SendingLink): Promise<SendOutcome> {
    const { pacing, health, ackTimeoutMs = QUERY_TIMEOUT_MS, onFailed } = this.#options
    const { address, content } = prepared
    const { whatsappId } = message
    let recorded = message.prepared ? Promise.resolve() : null
    let obstacle: unknown = null
    const recordPreparedOnce = (): Promise<void> => {
      recorded ??= this.#recordPrepared(message, prepared).catch(error => {
        obstacle = error
        if (!(error instanceof PreparedBefore || error instanceof Gone)) onFailed(error)
        throw error
      })
      return recorded
    }
    const typingMs = message.prepared ? 0 : pacing.typingMs(message)
    if (typingMs > 0) {
      await recordPreparedOnce().catch(() => undefined)
      if (obstacle !== null) return unwritten(obstacle)
      await showTyping(address, typingMs, link)
    }
    // Listen before the write: the acknowledgement may arrive before `write` returns.
    const answer = this.#waitForAnswer(whatsappId, link.closed)
    const writtenAt = performance.now()
    // `write` encrypts, then records (`adaptKeys` in `baileys/signal/send-context.ts`). If that fails, for example after a deletion, nothing is written.
    const written = link.write(address, content, whatsappId, recordPreparedOnce)
    try {
      // After a crash here the row is still queued. If anything was written, the prepared content is sent again.
      await Promise.race([written, answer])
    } catch (error) {
      this.#waiting.get(whatsappId)?.(null)
      return unwritten(obstacle ?? error)
    }
    // Not earlier: a timeout during the encryption would start a second write in parallel with the first, and possibly
    // neither copy for a group would contain the sender key.
    const timer = setTimeout(() => this.#waiting.get(whatsappId)?.(null), ackTimeoutMs)
    const ack = await answer
    clearTimeout(timer)
    if (!ack) return { kind: 'unanswered', why: 'no_acknowledgement' }
    health?.acknowledged(Math.round(performance.now() - writtenAt))
    // Otherwise a write that is still running would record later that the group has the key.
    if (ack.error !== undefined) await written.catch(() => undefined)
    return this.toOutcome(message, prepared, ack, link)
  }

  /** @returns false if no send waits for this acknowledgement */
  acknowledged(ack: Acknowledgement): boolean {
    const settle = this.#waiting.get(ack.whatsappId)
    settle?.(ack)
    return settle !== undefined
  }

  /** Resolves once this content is stored and may be written to the socket. @throws Gone @throws PreparedBefore */
  async #recordPrepared(message: QueuedMessage, prepared: PreparedMessage): Promise<void> {
    const { store, lease, logger, signal } = this.#options
    const stored = await untilStored(() => store.messages.recordPrepared(lease, message.id, prepared), signal)
    if (stored === null) throw new Gone()
    message.prepared = stored
    logger.debug(
      { instanceId: lease.instanceId, messageId: message.id, whatsappId: message.whatsappId },
      'message.prepared',
    )
    // An earlier attempt stored different content, which the next attempt sends.
    if (!Buffer.from(stored.content).equals(prepared.content)) throw new PreparedBefore()
  }

  async #expiryFailure(message: QueuedMessage): Promise<MessageFailure | null> {
    const { messageTtlMs, pacing, now } = this.#options
    const isPrepared = message.prepared !== null
    const failure = expiryFailure({ ...message, isPrepared }, now() - messageTtlMs)
    if (failure === null || isPrepared) return failure
    return (await pacing.waitedUntil(message)) > now() - messageTtlMs ? null : failure
  }

  /** A read mark is a receipt without content. WhatsApp ignores a repeated one. */
  async #markRead(
    message: QueuedMessage,
    { target }: Command,
    address: string,
    link: SendingLink,
  ): Promise<SendOutcome> {
    try {
      if (!message.prepared) await this.#recordPrepared(message, { address, content: new Uint8Array() })
      await link.markRead(messageKey(target, { address }))
      return { kind: 'acknowledged' }
    } catch (error) {
      return unwritten(error)
    }
  }

  /** Resolves to null after its callback in `#waiting` is called with null, or when the link closes. Never rejects. */
  #waitForAnswer(whatsappId: string, closed: AbortSignal): Promise<Acknowledgement | null> {
    const { promise, resolve } = Promise.withResolvers<Acknowledgement | null>()
    const settle = (ack: Acknowledgement | null) => {
      closed.removeEventListener('abort', giveUp)
      this.#waiting.delete(whatsappId)
      resolve(ack)
    }
    const giveUp = () => settle(null)
    closed.addEventListener('abort', giveUp, { once: true })
    this.#waiting.set(whatsappId, settle)
    if (closed.aborted) giveUp()
    return promise
  }

  /** Also for a late refusal. Prepares the next attempt, if there is one. */
  async toOutcome(
    message: QueuedMessage,
    prepared: PreparedMessage,
    ack: Acknowledgement,
    link: SendingLink,
  ): Promise<SendOutcome> {
    const { error, devicesHash } = ack
    const { address } = prepared
    const areDevicesStale = error === STALE_DEVICES
    // WhatsApp may repeat the same hash with every acknowledgement.
    const isHashNew = !areDevicesStale && devicesHash !== undefined && devicesHash !== this.#devicesHashes.get(address)
    if (isHashNew) this.#devicesHashes.set(address, devicesHash)
    if (areDevicesStale || isHashNew) {
      // A group's hash does not discard its members' device lists: a device that cannot decrypt the message requests it again.
      if (areDevicesStale || !isGroup(address)) await link.forgetDevices(address).catch(() => undefined)
      this.#options.groups.doubt(address)
    }
    if (error === undefined) return { kind: 'acknowledged' }
    shareKeyAgain(address, link)
    const retry = `${error} ${message.whatsappId}`
    if (isStale(error, address) && !this.#retriedStale.has(retry)) {
      const isGroupStale = error === STALE_ADDRESSING
      const obstacle = isGroupStale ? await this.#refreshGroup(address, link) : null
      if (obstacle) return obstacle
      this.#retriedStale.set(retry, true)
      return { kind: 'unanswered', why: isGroupStale ? 'stale_group' : 'stale_devices', atOnce: true }
    }
    // A refusal is final. After 463, another attempt would also count against the account and prolong the restriction.
    return { kind: 'refused', failure: await this.#findFailure(address, error, link) }
  }

  /** @returns null if the message can be sent again */
  async #refreshGroup(group: string, link: SendingLink): Promise<SendOutcome | null> {
    const membership = await this.#options.groups.query(group, link)
    if (membership === 'not_member') return { kind: 'refused', failure: messageFailure('not_a_group_member') }
    return membership === 'silent' ? { kind: 'unanswered', why: 'group_query' } : null
  }

  /** We do not know with which code WhatsApp refuses a message to a group that we have left, so we query the group. */
  async #findFailure(address: string, code: number, link: SendingLink): Promise<MessageFailure> {
    const { groups } = this.#options
    if (isGroup(address)) {
      groups.doubt(address)
      if ((await groups.find(address, link)) === 'not_member') return messageFailure('not_a_group_member')
    }
    return messageFailure('rejected_by_whatsapp', code)
  }
}

/** After a crash while the typing is shown, the prepared message is sent without typing. */
async function showTyping(address: string, ms: number, link: SendingLink): Promise<void> {
  if (!link.isOpen) return
  link.type(address, 'composing')
  await sleep(ms, undefined, { signal: link.closed }).catch(() => undefined)
}

class Gone extends Error {
  override readonly name = 'Gone'
}

class PreparedBefore extends Error {
  override readonly name = 'PreparedBefore'
}

function unwritten(error: unknown): SendOutcome {
  return error instanceof Gone ? { kind: 'gone' } : { kind: 'unanswered', why: nameOf(error) }
}

function nameOf(error: unknown): string {
  const { name, data, output } = (error ?? {}) as { name?: string; data?: unknown; output?: { statusCode?: number } }
  const code = typeof data === 'number' ? data : output?.statusCode
  return [name ?? 'error', code].filter(part => part !== undefined).join(' ')
}

function isGroup(address: string): boolean {
  return parseRecipient(address)?.kind === 'group'
}
