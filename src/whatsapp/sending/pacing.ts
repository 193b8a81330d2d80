import { isNoPace, typingMs } from '../../domain/pace.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { PaceState, Paces } from '../../store/pace/paces.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { AddressBook } from './address-book.ts'
import { chatKeyOf } from './queue/queued-chat.ts'
import type { SendQueue } from './queue/send-queue.ts'

/** The most messages to strangers in memory. Others stay in the database, so that there is space for messages to contacts. */
const MAX_STRANGERS = 256
const MAX_CLASSIFYING = 32
/** As many as the send queue has chats. */
const MAX_WAITS = 20_000
/** Finds a pace whose hint was lost. */
const POLL_INTERVAL_MS = 60_000
/** If the clock goes back by more than this, the waits that `paces.take` returned are decided again. */
const CLOCK_SET_BACK_MS = 1_000
/** The longest delay of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1

interface PacingOptions {
  lease: Lease
  paces: Pick<Paces, 'find' | 'take'>
  addresses: Pick<AddressBook, 'findContactStatus'>
  queue: Pick<SendQueue, 'chatOf' | 'defer' | 'isFull' | 'wakeDeferred' | 'wakeDeferredChat' | 'wantsMore'>
  now: () => number
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
  /** Other messages may be claimed now. */
  onChange(): void
  /** There is space for more messages, or deferred chats were woken. */
  onRoom(): void
  onFailed(error: unknown): void
}

/** `numbers`: the recipient's, if only messages to new recipients wait until the next day. Null: all messages wait. */
export interface Paced {
  kind: 'paced'
  numbers: readonly string[] | null
}

/**
 * The pace of an instance: decides which of its next messages may be sent now. Messages to contacts go first. An instance without
 * a pace costs one query at the start of its sender, and one each minute.
 */
export class Pacing {
  readonly #options: PacingOptions
  #state: PaceState | null = null
  #isOn = false
  #loaded: Promise<void> = Promise.resolve()
  /** As `paces.take` last returned them; see `PaceState`. */
  #opensAt = 0
  #newRecipientsAt = 0
  /** The time at the last selection. */
  #selectedAt = 0
  #classifying = 0
  readonly #toContacts = new WeakSet<QueuedMessage>()
  /** The next messages of chats with strangers, and the numbers that each stranger may write from. */
  #strangers = new Map<QueuedMessage, readonly string[]>()
  /** Messages to contacts for which `take` is running. */
  #contactsTaking = 0
  /** Messages to contacts, from the call of `take` until `release`. */
  readonly #contactsInFlight = new Set<QueuedMessage>()
  /** Until when the budget for new recipients makes, or made, the messages of these chats wait. */
  readonly #waits = new BoundedMap<string, number>(MAX_WAITS)
  /** Whether some messages to strangers wait in the database and not in memory. */
  #hasDeferred = false
  #wake: NodeJS.Timeout | undefined
  #poll: NodeJS.Timeout | undefined

  constructor(options: PacingOptions) {
    this.#options = options
  }

  start(): void {
    this.load()
    this.#poll = setInterval(() => this.load(), POLL_INTERVAL_MS)
  }

  stop(): void {
    clearTimeout(this.#wake)
    clearInterval(this.#poll)
  }

  /** The pace may have changed. */
  load(): void {
    this.#loaded = this.#load().catch(this.#options.onFailed)
  }

  /** @param heads the next message of each chat @returns those that may be claimed now */
  inOrder(heads: Iterable<QueuedMessage>): Iterable<QueuedMessage> {
    return this.#isOn ? this.#select(heads) : heads
  }

  /** Call before a message is prepared. @returns null if it may be sent now; `gone` if it has already failed */
  async take(message: QueuedMessage): Promise<Paced | { kind: 'gone' } | null> {
    await this.#loaded
    if (!this.#isOn || isFree(message)) return null
    const { lease, paces, addresses, now, signal } = this.#options
    const isToContact = this.#toContacts.has(message)
    if (isToContact) {
      this.#contactsTaking += 1
      this.#contactsInFlight.add(message)
    }
    try {
      const { known, numbers } = await addresses.findContactStatus(message.to)
      const recipient = known ? null : chatKeyOf(numbers.at(-1) ?? message.to)
      const turn = await untilStored(() => paces.take(lease, message.id, recipient, now()), signal)
      if (turn.kind === 'granted') return null
      if (turn.kind === 'gone') return turn
      if (turn.for === 'all') this.#opensAt = turn.until
      else this.#newRecipientsAt = turn.until
      this.#hasDeferred ||= turn.for === 'new_recipients'
      return { kind: 'paced', numbers: turn.for === 'all' ? null : numbers }
    } finally {
      if (isToContact) this.#contactsTaking -= 1
      this.#wakeLater()
    }
  }

  /** The attempt to send the message is over. */
  release(message: QueuedMessage): void {
    this.#contactsInFlight.delete(message)
  }

  /** The time until which the pace has made this message wait. The age of an earlier message counts from this time. */
  async waitedUntil(message: Pick<QueuedMessage, 'to'>): Promise<number> {
    await this.#loaded
    const opened = Math.max(this.#opensAt, this.#state?.opensAt ?? 0)
    const renewed = Math.max(this.#newRecipientsAt, this.#state?.newRecipientsAt ?? 0)
    if (renewed <= opened) return opened
    const { known } = await this.#options.addresses.findContactStatus(message.to)
    if (!known) {
      this.#noteWait(message, renewed)
      return renewed
    }
    // The wait of a recipient who has become a contact is over.
    return Math.max(opened, Math.min(this.#waits.get(chatKeyOf(message.to)) ?? 0, this.#options.now()))
  }

  #noteWait({ to }: Pick<QueuedMessage, 'to'>, until: number): void {
    this.#waits.set(chatKeyOf(to), until)
  }

  /** The outcome of this message is recorded, so its recipient may be a contact now. */
  noteOutcome(message: QueuedMessage): void {
    const { queue, onRoom } = this.#options
    const chat = queue.chatOf(message)
    if (!chat) return
    const [next] = chat.messages
    if (next) this.#strangers.delete(next)
    if (queue.wakeDeferredChat(message)) onRoom()
  }

  /** This number wrote to the instance, so messages to it no longer count as messages to a stranger. */
  noteContact(name: string): void {
    for (const [message, numbers] of this.#strangers) if (numbers.includes(name)) this.#strangers.delete(message)
    this.#options.queue.wakeDeferred(name)
    this.#options.onRoom()
  }

  /** The messages to a stranger wait in the database until the stranger becomes a contact, or all deferred chats are woken. */
  deferStranger(message: QueuedMessage, numbers: readonly string[]): void {
    const { addresses, queue, onFailed } = this.#options
    const chat = queue.chatOf(message)
    if (chat) queue.defer(chat, Number.POSITIVE_INFINITY, numbers)
    if (this.#newRecipientsAt > 0) this.#noteWait(message, this.#newRecipientsAt)
    // The recipient may have become a contact between the first check and `defer`. No other call would wake the chat.
    addresses
      .findContactStatus(message.to)
      .then(({ known }) => known && this.noteContact(message.to))
      .catch(onFailed)
  }

  /** How long to show that the instance is typing before this message; 0: not at all. */
  typingMs({ text, file, extras }: QueuedMessage): number {
    if (!this.#state?.pace.typing || file || extras?.command) return 0
    return typingMs(text)
  }

  async #load(): Promise<void> {
    const { lease, paces, signal, onChange } = this.#options
    const before = this.#state
    this.#state = await untilStored(() => paces.find(lease.instanceId), signal)
    this.#isOn = this.#state !== null && !isNoPace(this.#state.pace)
    if (JSON.stringify(before?.pace) === JSON.stringify(this.#state?.pace)) return
    this.#opensAt = 0
    this.#newRecipientsAt = 0
    this.#wakeStrangers()
    onChange()
  }

  *#select(heads: Iterable<QueuedMessage>): Generator<QueuedMessage> {
    const now = this.#options.now()
    if (now < this.#selectedAt - CLOCK_SET_BACK_MS) this.#opensAt = this.#newRecipientsAt = 0
    this.#selectedAt = now
    const [strangers, toContacts]: [Map<QueuedMessage, readonly string[]>, QueuedMessage[]] = [new Map(), []]
    const unknown: QueuedMessage[] = []
    const free: QueuedMessage[] = []
    for (const message of heads) {
      const numbers = this.#strangers.get(message)
      if (isFree(message)) free.push(message)
      else if (this.#toContacts.has(message)) toContacts.push(message)
      else if (numbers !== undefined) strangers.set(message, numbers)
      else unknown.push(message)
    }
    this.#strangers = strangers
    this.#classify(unknown)
    this.#makeSpace()
    yield* free
    if (this.#opensAt > now) return this.#wakeLater()
    yield* toContacts
    if (
      toContacts.length + unknown.length + this.#contactsTaking + this.#classifying > 0 ||
      this.#expectsMoreForContacts()
    )
      return
    yield* strangers.keys()
    if (strangers.size === 0 && this.#hasDeferred && this.#newRecipientsAt <= now) this.#wakeStrangers()
  }

  /** Whether another message to a contact may need the next turn: one that follows a message in flight, or in unread rows. */
  #expectsMoreForContacts(): boolean {
    if (this.#state?.pace.perMinute === null) return false
    const { queue } = this.#options
    if (queue.wantsMore) return true
    return [...this.#contactsInFlight].some(message => (queue.chatOf(message)?.messages.length ?? 0) > 1)
  }

  /** While memory is full, strangers wait in the database, the last one first, because contacts may follow in unread rows. */
  #makeSpace(): void {
    const { queue, onRoom } = this.#options
    for (const [message, numbers] of [...this.#strangers].slice(1).reverse()) {
      if (!queue.isFull) return
      this.#strangers.delete(message)
      this.#hasDeferred = true
      this.deferStranger(message, numbers)
      onRoom()
    }
  }

  #classify(messages: readonly QueuedMessage[]): void {
    for (const message of messages.slice(0, MAX_CLASSIFYING - this.#classifying)) {
      this.#classifying += 1
      this.#classifyOne(message)
        .catch(this.#options.onFailed)
        .finally(() => {
          this.#classifying -= 1
          if (this.#classifying === 0) this.#options.onChange()
        })
    }
  }

  async #classifyOne(message: QueuedMessage): Promise<void> {
    const { addresses, queue, now, onRoom } = this.#options
    const { known, numbers } = await addresses.findContactStatus(message.to)
    if (known) {
      this.#toContacts.add(message)
      return
    }
    if (this.#strangers.size < MAX_STRANGERS && this.#newRecipientsAt <= now()) {
      this.#strangers.set(message, numbers)
      return
    }
    const chat = queue.chatOf(message)
    if (!chat || chat.isBusy) return
    this.#hasDeferred = true
    this.deferStranger(message, numbers)
    this.#wakeLater()
    onRoom()
  }

  #wakeStrangers(): void {
    if (!this.#hasDeferred) return
    this.#hasDeferred = false
    this.#options.queue.wakeDeferred()
    this.#options.onRoom()
  }

  /** Calls `onChange` at the next time for which messages wait. */
  #wakeLater(): void {
    const { now, onChange, signal } = this.#options
    clearTimeout(this.#wake)
    if (signal.aborted) return
    const moments = [this.#opensAt, this.#newRecipientsAt].filter(moment => moment > now())
    if (moments.length === 0) return
    this.#wake = setTimeout(onChange, Math.min(Math.min(...moments) - now(), MAX_TIMER_MS))
  }
}

/** Commands are not paced, and a prepared message has had its turn. */
function isFree({ prepared, extras }: QueuedMessage): boolean {
  return prepared !== null || extras?.command !== undefined
}
