import type { MessageId } from '../domain/ids.ts'
import type { QueuedMessage } from '../store/store.ts'

/** Messages kept in memory for one recipient; the rest is read again when these are through. */
const KEPT_PER_RECIPIENT = 64
/** Messages kept in memory in all. */
const KEPT_IN_ALL = 2_048
/** Numbers given out, to all instances of the database, in the time that a commit takes. */
const COMMITTED_LATE = 1_000

/**
 * Where new rows may be: after all that was read; also a little before, since nodes commit side by side and a row with a
 * lower number may show later; or anywhere.
 */
export type LookFrom = 'on' | 'back' | 'start'

/** A recipient with the next messages to it, in the order accepted, one in flight at most. */
export interface QueuedRecipient {
  readonly to: string
  readonly messages: QueuedMessage[]
  /** Set while its first message is being sent. */
  busy: boolean
  /** How often the first message was sent in vain since the link was opened. */
  failures: number
  /** Nothing is tried before; milliseconds since 1970. */
  notBefore: number
  /** The first message that did not fit: what comes after it must not overtake it. */
  overflowFrom: number | null
}

interface Held {
  /** That the recipient may write from. */
  numbers: readonly string[]
  /** Milliseconds since 1970; `Infinity`: until it is released. */
  until: number
  failures: number
}

interface Reading {
  /** Ended while the rows were under way, which may show them as still queued. */
  ended: Set<MessageId>
  /** New rows may have come since it was asked for. */
  askedAgain: boolean
  /** Recipients whose messages here ran out meanwhile, and the first message that had not fitted: it is not among these rows. */
  reopened: Map<string, number>
}

function newReading(): Reading {
  return { ended: new Set(), askedAgain: false, reopened: new Map() }
}

/**
 * What of the queue is in memory: its recipients, each with the next messages to it. It holds a window of the rows, in
 * order; the rows are the truth. One recipient who has to wait keeps a few messages here; those of many are left in
 * their rows for as long, so that whoever does not have to wait finds room.
 */
export class Outbox {
  readonly #recipients = new Map<string, QueuedRecipient>()
  readonly #known = new Set<MessageId>()
  /** Set while rows are being read. The rows may show messages as still queued that ended meanwhile. */
  #reading: Reading | null = null
  /** Recipients whose messages stay in their rows for now. */
  readonly #held = new Map<string, Held>()
  #scannedTo = 0
  #passedOver = 0
  /** From where the next reading starts; null: from where the last one got to. */
  #lookFrom: LookFrom | null = null
  #complete = false

  /** Where the next page of rows starts. */
  get scannedTo(): number {
    return this.#scannedTo
  }

  /** Whether there may be rows that are not in memory, and room for them. */
  get wantsMore(): boolean {
    return !this.#complete && this.#known.size < KEPT_IN_ALL
  }

  /**
   * A new row is there, to this recipient. @returns whether it need not be read before those that wait in their rows for room
   * to the same one, of which it is told when there is room
   */
  passOver(to: string, from: LookFrom): boolean {
    const isOverflowing = typeof this.#recipients.get(to)?.overflowFrom === 'number'
    if (!isOverflowing) return false
    this.#passedOver += 1
    this.#lookBack(from)
    return true
  }

  get size(): number {
    return this.#known.size
  }

  recipients(): Iterable<QueuedRecipient> {
    return this.#recipients.values()
  }

  /** New rows may be there. */
  lookAgain(from: LookFrom): void {
    this.#complete = false
    if (this.#reading) this.#reading.askedAgain = true
    this.#lookBack(from)
  }

  /**
   * Before the first page of a reading: goes back as far as was asked, once, however often. In the middle of a reading it
   * would be read again and again while hints come in.
   */
  rewind(): void {
    if (this.#lookFrom === 'start') {
      this.#scannedTo = 0
      this.#passedOver = 0
    } else if (this.#lookFrom === 'back') this.#scannedTo = Math.max(0, this.#scannedTo - COMMITTED_LATE)
    this.#lookFrom = null
  }

  beginRead(): void {
    this.#reading = newReading()
  }

  /** Takes a page of rows in at `now`; `isLast`: there are none after it. */
  endRead(rows: readonly QueuedMessage[], isLast: boolean, now: number): void {
    const { ended, askedAgain, reopened } = this.#reading ?? newReading()
    this.#reading = null
    for (const message of rows) {
      this.#scannedTo = Math.max(this.#scannedTo, message.seq)
      const missesSome = message.seq >= (reopened.get(message.to) ?? Number.POSITIVE_INFINITY)
      if (!missesSome && !ended.has(message.id) && !this.#known.has(message.id)) this.#add(message, now)
    }
    for (const from of reopened.values()) this.#scannedTo = Math.min(this.#scannedTo, from - 1)
    if (isLast && !askedAgain && reopened.size === 0) this.#complete = true
  }

  /** The message needs nothing more, and that is recorded: its row is not queued any more. */
  end(message: QueuedMessage): void {
    this.#reading?.ended.add(message.id)
    this.pass(message)
    this.#known.delete(message.id)
  }

  /** The next one to the recipient can go: this one is acknowledged, refused or too old. */
  pass(message: QueuedMessage): void {
    const recipient = this.#recipients.get(message.to)
    const index = recipient?.messages.findIndex(({ id }) => id === message.id) ?? -1
    if (!recipient || index < 0) return
    recipient.messages.splice(index, 1)
    if (index === 0) {
      recipient.failures = 0
      recipient.notBefore = 0
    }
    if (recipient.messages.length === 0) this.#emptied(recipient)
  }

  /** Whether a recipient who has to wait takes up room that others need. */
  get isFull(): boolean {
    return this.#known.size >= KEPT_IN_ALL
  }

  /**
   * Messages to this recipient stay in their rows until they are released, or read after `until`.
   * @param numbers that it may write from
   */
  hold(to: string, { numbers = [to], until = Number.POSITIVE_INFINITY }: Partial<Omit<Held, 'failures'>> = {}): void {
    const recipient = this.#recipients.get(to)
    for (const { id } of recipient?.messages ?? []) this.#known.delete(id)
    this.#recipients.delete(to)
    this.#held.set(to, { numbers, until, failures: recipient?.failures ?? 0 })
    this.#complete = false
  }

  get holdsAny(): boolean {
    return this.#held.size > 0
  }

  /** Rows that were not kept, or not read for that reason, since the last reading from the start began. */
  get passedOver(): number {
    return this.#passedOver
  }

  /** Those held for this number, or all of them. */
  release(number?: string): void {
    const size = this.#held.size
    for (const [to, { numbers }] of this.#held) if (!number || numbers.includes(number)) this.#held.delete(to)
    if (this.#held.size < size) this.lookAgain('start')
  }

  /** The message with this WhatsApp id, if it is the next one to its recipient and not being sent. */
  findWaiting(whatsappId: string): QueuedMessage | null {
    for (const { busy, messages } of this.#recipients.values()) {
      if (!busy && messages[0]?.whatsappId === whatsappId) return messages[0]
    }
    return null
  }

  /** The link is open (again): everything is tried at once. */
  tryAllAgain(): void {
    for (const [to, { until }] of this.#held) if (until < Number.POSITIVE_INFINITY) this.#held.delete(to)
    for (const recipient of this.#recipients.values()) {
      recipient.failures = 0
      recipient.notBefore = 0
    }
  }

  #lookBack(from: LookFrom): void {
    if (this.#lookFrom !== 'start' && from !== 'on') this.#lookFrom = from
  }

  #add(message: QueuedMessage, now: number): void {
    const held = this.#held.get(message.to)
    if (held && held.until > now) {
      this.#passedOver += 1
      return
    }
    this.#held.delete(message.to)
    const recipient = this.#recipients.get(message.to) ?? newRecipient(message.to, held?.failures)
    this.#recipients.set(message.to, recipient)
    const overflowFrom = recipient.overflowFrom ?? Number.POSITIVE_INFINITY
    if (recipient.messages.length >= KEPT_PER_RECIPIENT) recipient.overflowFrom = Math.min(overflowFrom, message.seq)
    if (message.seq >= (recipient.overflowFrom ?? Number.POSITIVE_INFINITY)) {
      this.#passedOver += 1
      return
    }
    this.#known.add(message.id)
    // A row that was committed late may belong before others, but never before the one in flight.
    let index = recipient.messages.length
    while (index > (recipient.busy ? 1 : 0) && (recipient.messages[index - 1]?.seq ?? 0) > message.seq) index -= 1
    recipient.messages.splice(index, 0, message)
  }

  #emptied(recipient: QueuedRecipient): void {
    if (recipient.overflowFrom !== null) {
      this.#reading?.reopened.set(recipient.to, recipient.overflowFrom)
      this.#scannedTo = Math.min(this.#scannedTo, recipient.overflowFrom - 1)
      this.#complete = false
      recipient.overflowFrom = null
    }
    this.#recipients.delete(recipient.to)
  }
}

function newRecipient(to: string, failures = 0): QueuedRecipient {
  return { to, messages: [], busy: false, failures, notBefore: 0, overflowFrom: null }
}
