import type { MessageId } from '../../domain/ids.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import { chatKeyOf } from './chat.ts'
import { QueuedChat } from './queued-chat.ts'

/** Messages kept in memory for one chat; the rest is read again when these are through. */
const KEPT_PER_CHAT = 64
/** Messages kept in memory in all. */
const KEPT_IN_ALL = 2_048
/** Chats remembered as held; what comes after more of them waits with them. */
const HELD_IN_ALL = 20_000
/** Numbers given out, to all instances of the database, in the time that a commit takes. */
const COMMITTED_LATE = 1_000

/**
 * Where new rows may be: after all that was read; also a little before, since nodes commit side by side and a row with a
 * lower number may show later; or anywhere.
 */
export type LookFrom = 'on' | 'back' | 'start'

interface Held {
  /** That the recipient may write from. */
  numbers: readonly string[]
  /** On the clock that never jumps; `Infinity`: until it is released. */
  until: number
  failures: number
  aliases: ReadonlySet<string>
}

type HoldOptions = Partial<Pick<Held, 'numbers' | 'until'>>

interface Reading {
  /** Ended while the rows were under way, which may show them as still queued. */
  ended: Set<MessageId>
  /** New rows may have come since it was asked for. */
  askedAgain: boolean
  /** Chats whose messages here ran out meanwhile, and the first message that had not fitted: it is not among these rows. */
  reopened: Map<string, number>
}

function newReading(): Reading {
  return { ended: new Set(), askedAgain: false, reopened: new Map() }
}

/**
 * What of the queue is in memory: its chats, each with the next messages to it. It holds a window of the rows, in
 * order; the rows are the truth. One chat that has to wait keeps a few messages here; those of many are left in
 * their rows for as long, so that others find room.
 *
 * Two recipients are one chat as soon as one of them is known to lead to the other: from what is stored, or from WhatsApp's
 * answer. From then on they stay one for as long as messages of it are here.
 */
export class Outbox {
  readonly #chats = new Map<string, QueuedChat>()
  /** From the key of a recipient or address to that of its chat, where it is another one. */
  readonly #joined = new Map<string, string>()
  readonly #known = new Set<MessageId>()
  /** Set while rows are being read. The rows may show messages as still queued that ended meanwhile. */
  #reading: Reading | null = null
  /** Chats whose messages stay in their rows for now, by key. */
  readonly #held = new Map<string, Held>()
  /** The first message of a chat that is held and not remembered: no other chat is taken up from there on. */
  #heldFrom = Number.POSITIVE_INFINITY
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
   * A new row is there, to this recipient. @returns whether it need not be read before those of the same chat that wait in
   * their rows for room
   */
  passOver(to: string, from: LookFrom): boolean {
    const isOverflowing = typeof this.#chats.get(this.#keyOf(to))?.overflowFrom === 'number'
    if (!isOverflowing) return false
    this.#passedOver += 1
    this.#lookBack(from)
    return true
  }

  get size(): number {
    return this.#known.size
  }

  chats(): Iterable<QueuedChat> {
    return this.#chats.values()
  }

  /** Null when nothing of it is here any more. */
  chatOf({ to }: QueuedMessage): QueuedChat | null {
    return this.#chats.get(this.#keyOf(to)) ?? null
  }

  /**
   * To be asked before a message is written to this address.
   * @returns false where another message to the same chat comes first
   */
  claim(message: QueuedMessage, address: string): boolean {
    this.#join(message.to, address)
    return this.chatOf(message)?.claim(message) ?? false
  }

  /** The message is not in hand any more. */
  finish(message: QueuedMessage): void {
    const chat = this.chatOf(message)
    chat?.finish(message)
    if (chat) this.#dropOverflowing(chat)
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
      this.#heldFrom = Number.POSITIVE_INFINITY
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
      if (ended.has(message.id) || this.#known.has(message.id)) continue
      this.#joinAll(message)
      const missesSome = message.seq >= (reopened.get(this.#keyOf(message.to)) ?? Number.POSITIVE_INFINITY)
      if (!missesSome) this.#add(message, now)
      const chat = this.chatOf(message)
      if (chat?.messages.length === 0) this.#emptied(chat)
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

  /** The next one to the chat can go: this one is acknowledged, refused or too old. */
  pass(message: QueuedMessage): void {
    const chat = this.chatOf(message)
    if (chat?.remove(message) && chat.messages.length === 0) this.#emptied(chat)
  }

  /** Whether a recipient who has to wait takes up room that others need. */
  get isFull(): boolean {
    return this.#known.size >= KEPT_IN_ALL
  }

  /**
   * Messages to this chat stay in their rows until they are released, or read after `until`.
   * @param numbers that it may write from
   */
  hold(key: string, { numbers = [key], until = Number.POSITIVE_INFINITY }: HoldOptions = {}): void {
    const chat = this.#chats.get(key)
    for (const { id } of chat?.messages ?? []) this.#known.delete(id)
    this.#chats.delete(key)
    this.#complete = false
    if (this.#held.size >= HELD_IN_ALL && !this.#held.has(key)) {
      this.#heldFrom = Math.min(this.#heldFrom, chat?.messages[0]?.seq ?? Number.POSITIVE_INFINITY)
      for (const alias of chat?.aliases ?? []) this.#joined.delete(alias)
      return
    }
    this.#held.set(key, { numbers, until, failures: chat?.failures ?? 0, aliases: chat?.aliases ?? new Set() })
  }

  get heldChats(): number {
    return this.#held.size
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

  /** The message with this WhatsApp id, if it is the next one to its chat and not being sent. */
  findWaiting(whatsappId: string): QueuedMessage | null {
    for (const { isBusy, messages } of this.#chats.values()) {
      if (!isBusy && messages[0]?.whatsappId === whatsappId) return messages[0]
    }
    return null
  }

  /** The link is open (again): everything is tried at once. */
  tryAllAgain(): void {
    for (const [to, { until }] of this.#held) if (until < Number.POSITIVE_INFINITY) this.#held.delete(to)
    for (const chat of this.#chats.values()) {
      chat.failures = 0
      chat.notBefore = 0
    }
  }

  #lookBack(from: LookFrom): void {
    if (this.#lookFrom !== 'start' && from !== 'on') this.#lookFrom = from
  }

  #add(message: QueuedMessage, now: number): void {
    const key = this.#keyOf(message.to)
    const held = this.#held.get(key)
    const isBehindHeld = message.seq >= this.#heldFrom && !this.#chats.has(key)
    if (isBehindHeld || (held && held.until > now)) {
      this.#passedOver += 1
      return
    }
    this.#held.delete(key)
    const chat = this.#chats.get(key) ?? this.#open(key, held)
    if (chat.messages.length >= KEPT_PER_CHAT) chat.noteOverflow(message.seq)
    if (message.seq >= (chat.overflowFrom ?? Number.POSITIVE_INFINITY)) {
      this.#passedOver += 1
      return
    }
    this.#known.add(message.id)
    chat.insert(message)
  }

  #open(key: string, held: Held | undefined): QueuedChat {
    const chat = new QueuedChat(key, held?.failures)
    for (const alias of held?.aliases ?? []) chat.aliases.add(alias)
    this.#chats.set(key, chat)
    return chat
  }

  #emptied(chat: QueuedChat): void {
    if (chat.overflowFrom !== null) {
      this.#reopen(chat.key, chat.overflowFrom)
      this.#scannedTo = Math.min(this.#scannedTo, chat.overflowFrom - 1)
      this.#complete = false
      chat.overflowFrom = null
    }
    this.#chats.delete(chat.key)
    for (const alias of chat.aliases) this.#joined.delete(alias)
  }

  // ── Which recipients are one chat ─────────────────────────────────────────────────────────────────────────────

  #keyOf(to: string): string {
    let key = chatKeyOf(to)
    for (let next = this.#joined.get(key); next !== undefined; next = this.#joined.get(key)) key = next
    return key
  }

  #joinAll({ to, foundAddress, prepared }: QueuedMessage): void {
    for (const address of [foundAddress, prepared?.address]) if (address) this.#join(to, address)
  }

  #join(to: string, address: string): void {
    const key = this.#keyOf(to)
    const gone = this.#keyOf(address)
    if (key === gone) return
    const chat = this.#chats.get(key) ?? this.#open(key, this.#held.get(key))
    const absorbed = this.#chats.get(gone) ?? this.#open(gone, this.#held.get(gone))
    // Whether it still has to be held shows when it is read again.
    for (const each of [key, gone]) if (this.#held.delete(each)) this.lookAgain('start')
    chat.absorb(absorbed)
    this.#chats.delete(gone)
    chat.aliases.add(gone)
    this.#joined.set(gone, key)
    const reopenedFrom = this.#reading?.reopened.get(gone)
    if (reopenedFrom !== undefined) this.#reopen(key, reopenedFrom)
    this.#dropOverflowing(chat)
  }

  #reopen(key: string, from: number): void {
    const reopened = this.#reading?.reopened
    reopened?.set(key, Math.min(reopened.get(key) ?? from, from))
  }

  #dropOverflowing(chat: QueuedChat): void {
    const taken = chat.takeOverflowing()
    for (const { id } of taken) this.#known.delete(id)
    this.#passedOver += taken.length
    if (taken.length > 0 && chat.messages.length === 0) this.#emptied(chat)
  }
}
