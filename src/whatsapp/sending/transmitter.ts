import { type MessageFailure, messageFailure } from '../../domain/message.ts'
import { parseRecipient } from '../../domain/recipient.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { Turns } from '../../kit/event-loop-budget.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { PreparedMessage, QueuedMessage } from '../../store/messages/messages.ts'
import type { Store } from '../../store/store.ts'
import { encodeText } from '../baileys/content.ts'
import type { Acknowledgement, Link } from '../baileys/link.ts'
import { QUERY_TIMEOUT_MS } from '../baileys/socket-options.ts'
import { Acknowledgements } from './acknowledgements.ts'
import type { AddressBook } from './address-book.ts'
import type { Expiry } from './expiry.ts'
import type { GroupDirectory } from './group-directory.ts'

const HASHES = 2_000
/** Messages remembered as refused once; one that is forgotten is tried once more. */
const RETRIED = 2_000
/** No longer than a query is waited for. */
const DEFAULT_ACK_TIMEOUT_MS = QUERY_TIMEOUT_MS

/** WhatsApp's code for a stanza that names devices the recipient no longer has (Baileys `SERVER_ERROR_CODES`). */
export const STALE_DEVICES = 479

/** What came of handing one message to WhatsApp. Every branch is finished by the sender. */
export type SendOutcome =
  | { kind: 'acknowledged' }
  /** Try again, under the same id with the same content. */
  | { kind: 'unanswered'; why: string }
  | { kind: 'refused'; failure: MessageFailure }
  /** Not written: another message of the same chat comes first. */
  | { kind: 'overtaking' }
  /** WhatsApp lets us write to nobody new for now: not tried. */
  | { kind: 'held'; numbers: readonly string[] }

/** Where a message goes and with which bytes, or why it cannot. */
type Prepared = { kind: 'ready'; prepared: PreparedMessage } | Extract<SendOutcome, { kind: 'unanswered' | 'refused' }>

export type SendingLink = Pick<
  Link,
  'isOpen' | 'closed' | 'self' | 'write' | 'lookUp' | 'queryGroup' | 'forgetDevices' | 'shareKeyAgain'
>

export interface TransmitterOptions {
  lease: Lease
  store: Pick<Store, 'messages'>
  addresses: AddressBook
  groups: GroupDirectory
  turns: Turns
  expiry: Pick<Expiry, 'failureOf'>
  ackTimeoutMs?: number | undefined
  isRestricted(): boolean
  /** Whether the message may be written to this address now, or another of the same chat comes first. */
  claim(message: QueuedMessage, address: string): boolean
  /** How long WhatsApp took to acknowledge a message. */
  onAcknowledged?: ((latencyMs: number) => void) | undefined
  /** Repeats what the store refuses while it is away. */
  stored<T>(work: () => Promise<T>): Promise<T>
  onFailed(error: unknown): void
}

/** Hands one message to WhatsApp and waits for the answer: address, content, socket, acknowledgement. */
export class Transmitter {
  readonly #options: TransmitterOptions
  readonly #acknowledgements = new Acknowledgements()
  /** Messages that WhatsApp refused once for stale devices: the second time is final. */
  readonly #retriedDevices = new BoundedMap<string, true>(RETRIED)
  /** What WhatsApp told last of a recipient's devices, by address. */
  readonly #devicesHashes = new BoundedMap<string, string>(HASHES)

  constructor(options: TransmitterOptions) {
    this.#options = options
  }

  async send(message: QueuedMessage, link: SendingLink): Promise<SendOutcome> {
    const outcome = await this.#send(message, link)
    if (outcome.kind === 'acknowledged' || outcome.kind === 'refused') this.#retriedDevices.delete(message.whatsappId)
    return outcome
  }

  /** False: nobody waits for this one, or not any more. */
  acknowledged(ack: Acknowledgement): boolean {
    return this.#acknowledgements.give(ack)
  }

  async #send(message: QueuedMessage, link: SendingLink): Promise<SendOutcome> {
    const { turns, expiry, isRestricted, addresses, onAcknowledged } = this.#options
    await turns.take()
    // It was written, perhaps, and never acknowledged: what it brought may be lost.
    if (message.prepared) shareKeyAgain(message.prepared.address, link)
    const failure = expiry.failureOf(message)
    if (failure) return { kind: 'refused', failure }
    if (isRestricted()) {
      const { known, numbers } = await addresses.findStanding(message.to)
      if (!known) return { kind: 'held', numbers }
    }
    const ready = message.prepared
      ? { kind: 'ready' as const, prepared: message.prepared }
      : await this.#prepare(message, link)
    if (ready.kind !== 'ready') return ready
    const { prepared } = ready
    const { address, content } = prepared
    if (!this.#options.claim(message, address)) return { kind: 'overtaking' }
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
    onAcknowledged?.(Math.round(performance.now() - handedOverAt))
    return this.#judge(message, prepared, ack, link)
  }

  /** Look-up and content. */
  async #prepare(message: QueuedMessage, link: SendingLink): Promise<Prepared> {
    const found = await this.#options.addresses.find(message.to, link)
    if (found.kind !== 'found') return found
    return { kind: 'ready', prepared: { address: found.address, content: encodeText(message.text) } }
  }

  /** Resolves once this is what is stored, so that it may be written to the socket. */
  #recordPrepared(message: QueuedMessage, prepared: PreparedMessage): Promise<void> {
    const { store, lease, stored, onFailed } = this.#options
    const recorded = stored(() => store.messages.recordPrepared(lease, message.id, prepared)).then(inForce => {
      message.prepared = inForce
      // An earlier one was stored after all: the next try goes out with its content.
      if (!Buffer.from(inForce.content).equals(prepared.content)) throw new PreparedBefore()
    })
    recorded.catch(error => {
      if (!(error instanceof PreparedBefore)) onFailed(error)
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
    shareKeyAgain(prepared.address, link)
    if (ack.error === STALE_DEVICES && !this.#retriedDevices.has(message.whatsappId)) {
      this.#retriedDevices.set(message.whatsappId, true)
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
}

/** Only groups have one key for all. */
function shareKeyAgain(address: string, link: SendingLink): void {
  if (parseRecipient(address)?.kind === 'group') link.shareKeyAgain(address)
}

class PreparedBefore extends Error {
  override readonly name = 'PreparedBefore'
}

function nameOf(error: unknown): string {
  const { name, data, output } = (error ?? {}) as { name?: string; data?: unknown; output?: { statusCode?: number } }
  const code = typeof data === 'number' ? data : output?.statusCode
  return [name ?? 'error', code].filter(part => part !== undefined).join(' ')
}
