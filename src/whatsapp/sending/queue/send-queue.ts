import type { MessageId } from '../../../domain/ids.ts'
import type { QueuedMessage } from '../../../store/messages/messages.ts'
import { chatKeyOf, QueuedChat } from './queued-chat.ts'

/** Messages of one chat in memory. The others are read once these are sent. */
const MAX_PER_CHAT = 64
const MAX_MESSAGES = 2_048
/** Beyond this many deferred chats, every chat whose first message is later is deferred too. */
const MAX_DEFERRED = 20_000
/** While one commit is in progress, at most this many numbers are assigned in the whole database. */
const OVERLAP = 1_000

/**
 * Where the next read starts: after the last row that was read; a little before it, because on several nodes a row with a
 * lower number may be committed later; or at the first row.
 */
export type ReadFrom = 'next' | 'overlap' | 'start'

interface Deferred {
  /** An incoming message from one of these numbers releases the chat. */
  numbers: readonly string[]
  /** Its rows are skipped until this moment (`performance.now()`). `Infinity`: until it is released. */
  until: number
  failures: number
  aliases: ReadonlySet<string>
}

type DeferOptions = Partial<Pick<Deferred, 'numbers' | 'until'>>

interface Reading {
  /** Removed during the read. The rows may still show them as queued. */
  removed: Set<MessageId>
  /** Another read was requested during this one. */
  readAgain: boolean
  /** Chats that ran empty during the read, and `seq` of the first message that had not fitted. The read has skipped it. */
  reopened: Map<string, number>
}

/**
 * The part of the send queue that is in memory: chats with their next messages. It is a cache of the queued rows, read in
 * order. A deferred chat keeps nothing in memory, so it takes no space from the others.
 *
 * Two recipients become one chat when a stored address or WhatsApp's answer shows that they are the same. They stay one
 * as long as the chat has messages in memory.
 */
export class SendQueue {
  readonly #chats = new Map<string, QueuedChat>()
  /** The key of the chat, by the key of a recipient or address that has joined another chat. */
  readonly #joined = new Map<string, string>()
  readonly #known = new Set<MessageId>()
  /** Null while no rows are being read. */
  #reading: Reading | null = null
  /** By the key of the chat. */
  readonly #deferred = new Map<string, Deferred>()
  /** `seq` of the first message of a chat that exceeded `MAX_DEFERRED`. No other chat is opened from there on. */
  #deferredFrom = Number.POSITIVE_INFINITY
  /** The next page starts after this number. */
  scannedTo = 0
  /** Every row up to this number has been read. It is in memory, or its chat is overflowing or deferred. */
  #seenTo = 0
  /**
   * The keys of chats whose skipped rows are being read again, from `scannedTo` on. Once each of them is full, the read goes
   * on at `#seenTo`.
   */
  readonly #refilling = new Set<string>()
  skippedRows = 0
  /** Null: the next read continues where the last one ended. */
  #readFrom: ReadFrom | null = null
  #complete = false

  /** True if there may be rows that are not in memory, and space for them. */
  get wantsMore(): boolean {
    return !this.#complete && !this.isFull
  }

  /** Call for each new row. @returns true if earlier messages to this recipient are still unread, so no read is needed */
  skipNewRow(to: string, from: ReadFrom): boolean {
    const isOverflowing = typeof this.#chats.get(this.#keyOf(to))?.overflowFrom === 'number'
    if (!isOverflowing) return false
    this.skippedRows += 1
    this.#moveBack(from)
    return true
  }

  get size(): number {
    return this.#known.size
  }

  chats(): Iterable<QueuedChat> {
    return this.#chats.values()
  }

  /** Null if the chat has no messages in memory. */
  chatOf({ to }: QueuedMessage): QueuedChat | null {
    return this.#chats.get(this.#keyOf(to)) ?? null
  }

  /** Two names turned out to belong to one person. */
  noteSame(one: string, other: string): void {
    if (this.#chats.has(this.#keyOf(one)) && this.#chats.has(this.#keyOf(other))) this.#join(one, other)
  }

  /** Call before writing the message to this address. @returns false if another message of the same chat goes first */
  beginWrite(message: QueuedMessage, address: string): boolean {
    this.#join(message.to, address)
    return this.chatOf(message)?.beginWrite(message) ?? false
  }

  /** The attempt to send it is over. */
  unclaim(message: QueuedMessage): void {
    const chat = this.chatOf(message)
    chat?.unclaim(message)
    if (chat) this.#dropOverflowing(chat)
  }

  /** There may be new rows. */
  requestRead(from: ReadFrom): void {
    this.#complete = false
    if (this.#reading) this.#reading.readAgain = true
    this.#moveBack(from)
  }

  /** Call before the first page of a read. Moving back between pages would never end while hints keep arriving. */
  rewind(): void {
    if (this.#readFrom === 'start') {
      this.scannedTo = 0
      this.#seenTo = 0
      this.#refilling.clear()
      this.skippedRows = 0
      this.#deferredFrom = Number.POSITIVE_INFINITY
    } else if (this.#readFrom === 'overlap') {
      this.scannedTo = Math.max(0, this.scannedTo - OVERLAP)
      this.#seenTo = Math.max(0, this.#seenTo - OVERLAP)
    }
    this.#readFrom = null
  }

  beginRead(): void {
    this.#reading = { removed: new Set(), readAgain: false, reopened: new Map() }
  }

  /** Adds a page of rows. `isLast`: no rows follow. */
  endRead(rows: readonly QueuedMessage[], isLast: boolean, now: number): void {
    const { removed, readAgain, reopened } = this.#reading!
    this.#reading = null
    for (const message of rows) {
      this.scannedTo = Math.max(this.scannedTo, message.seq)
      if (removed.has(message.id) || this.#known.has(message.id)) continue
      for (const address of [message.foundAddress, message.prepared?.address]) {
        if (address) this.#join(message.to, address)
      }
      const hasGap = message.seq >= (reopened.get(this.#keyOf(message.to)) ?? Number.POSITIVE_INFINITY)
      if (!hasGap) this.#add(message, now)
      const chat = this.chatOf(message)
      if (chat?.messages.length === 0) this.#closeChat(chat)
    }
    const isAtEnd = isLast || this.scannedTo >= this.#seenTo
    this.#seenTo = Math.max(this.#seenTo, this.scannedTo)
    for (const key of this.#refilling) {
      if (!reopened.has(key) && (isAtEnd || this.#isOverflowing(key))) this.#refilling.delete(key)
    }
    if (this.#refilling.size === 0) this.scannedTo = this.#seenTo
    for (const from of reopened.values()) this.scannedTo = Math.min(this.scannedTo, from - 1)
    if (isLast && !readAgain && reopened.size === 0) this.#complete = true
  }

  /** The outcome is recorded, so the row is no longer queued. */
  remove(message: QueuedMessage): void {
    this.#reading?.removed.add(message.id)
    this.settle(message)
    this.#known.delete(message.id)
  }

  /** The outcome is known. The next message of the chat may be sent while it is recorded. */
  settle(message: QueuedMessage): void {
    const chat = this.chatOf(message)
    if (chat?.remove(message) && chat.messages.length === 0) this.#closeChat(chat)
  }

  get isFull(): boolean {
    return this.#known.size >= MAX_MESSAGES
  }

  /** Removes a chat from memory. It is read again once it is released, or by the first read after `until`. */
  defer(key: string, { numbers = [key], until = Number.POSITIVE_INFINITY }: DeferOptions = {}): void {
    const chat = this.#chats.get(key)
    for (const { id } of chat?.messages ?? []) this.#known.delete(id)
    this.#chats.delete(key)
    this.#complete = false
    if (this.#deferred.size >= MAX_DEFERRED && !this.#deferred.has(key)) {
      this.#deferredFrom = Math.min(this.#deferredFrom, chat?.messages[0]?.seq ?? Number.POSITIVE_INFINITY)
      for (const alias of chat?.aliases ?? []) this.#joined.delete(alias)
      return
    }
    this.#deferred.set(key, { numbers, until, failures: chat?.failures ?? 0, aliases: chat?.aliases ?? new Set() })
  }

  get deferredChats(): number {
    return this.#deferred.size
  }

  /** Releases the chats deferred for this number, or all chats. */
  release(number?: string): void {
    const size = this.#deferred.size
    for (const [to, { numbers }] of this.#deferred) if (!number || numbers.includes(number)) this.#deferred.delete(to)
    if (this.#deferred.size < size) this.requestRead('start')
  }

  /** The message with this WhatsApp ID, if it is the next one of its chat and not being sent. */
  findWaiting(whatsappId: string): QueuedMessage | null {
    for (const { isBusy, messages } of this.#chats.values()) {
      if (!isBusy && messages[0]?.whatsappId === whatsappId) return messages[0]
    }
    return null
  }

  /** Call when a link opens: chats that wait for a retry are sent at once. */
  resetBackoff(): void {
    for (const [to, { until }] of this.#deferred) if (until < Number.POSITIVE_INFINITY) this.#deferred.delete(to)
    for (const chat of this.#chats.values()) {
      chat.failures = 0
      chat.notBefore = 0
    }
  }

  /** A file may be there: chats that wait for one try again. Those without space in memory follow when they are read again. */
  releaseFiles(): void {
    for (const chat of this.#chats.values()) {
      if (!chat.awaitsFile) continue
      chat.awaitsFile = false
      chat.notBefore = 0
    }
  }

  #moveBack(from: ReadFrom): void {
    if (this.#readFrom !== 'start' && from !== 'next') this.#readFrom = from
  }

  #add(message: QueuedMessage, now: number): void {
    const key = this.#keyOf(message.to)
    const deferred = this.#deferred.get(key)
    const isBehindDeferred = message.seq >= this.#deferredFrom && !this.#chats.has(key)
    if (isBehindDeferred || (deferred && deferred.until > now)) {
      this.skippedRows += 1
      return
    }
    this.#deferred.delete(key)
    const chat = this.#chats.get(key) ?? this.#openChat(key, deferred)
    if (message.seq === chat.overflowFrom && chat.messages.length < MAX_PER_CHAT) {
      // There is space again, and its other skipped rows follow.
      chat.overflowFrom = null
      this.#refilling.add(key)
    }
    if (chat.messages.length >= MAX_PER_CHAT) chat.noteOverflow(message.seq)
    if (message.seq >= (chat.overflowFrom ?? Number.POSITIVE_INFINITY)) {
      this.skippedRows += 1
      return
    }
    this.#known.add(message.id)
    chat.insert(message)
  }

  /** Whether the read has passed a row that did not fit. */
  #isOverflowing(key: string): boolean {
    const from = this.#chats.get(this.#keyOf(key))?.overflowFrom
    return typeof from === 'number' && from <= this.scannedTo
  }

  #openChat(key: string, deferred: Deferred | undefined): QueuedChat {
    const chat = new QueuedChat(key, deferred?.failures)
    for (const alias of deferred?.aliases ?? []) chat.aliases.add(alias)
    this.#chats.set(key, chat)
    return chat
  }

  #closeChat(chat: QueuedChat): void {
    if (chat.overflowFrom !== null) {
      this.#reopen(chat.key, chat.overflowFrom)
      this.scannedTo = Math.min(this.scannedTo, chat.overflowFrom - 1)
      this.#complete = false
      chat.overflowFrom = null
      for (const key of [chat.key, ...chat.aliases]) this.#refilling.add(key)
    }
    this.#chats.delete(chat.key)
    for (const alias of chat.aliases) this.#joined.delete(alias)
  }

  // ── Recipients that are the same chat ─────────────────────────────────────────────────────────────────────────

  #keyOf(to: string): string {
    let key = chatKeyOf(to)
    for (let next = this.#joined.get(key); next !== undefined; next = this.#joined.get(key)) key = next
    return key
  }

  #join(to: string, address: string): void {
    const key = this.#keyOf(to)
    const otherKey = this.#keyOf(address)
    if (key === otherKey) return
    const chat = this.#chats.get(key) ?? this.#openChat(key, this.#deferred.get(key))
    const absorbed = this.#chats.get(otherKey) ?? this.#openChat(otherKey, this.#deferred.get(otherKey))
    // If the joined chat must still wait, the next attempt to send defers it again.
    for (const each of [key, otherKey]) if (this.#deferred.delete(each)) this.requestRead('start')
    chat.absorb(absorbed)
    this.#chats.delete(otherKey)
    chat.aliases.add(otherKey)
    this.#joined.set(otherKey, key)
    const reopenedFrom = this.#reading?.reopened.get(otherKey)
    if (reopenedFrom !== undefined) this.#reopen(key, reopenedFrom)
    this.#dropOverflowing(chat)
  }

  #reopen(key: string, from: number): void {
    const reopened = this.#reading?.reopened
    reopened?.set(key, Math.min(reopened.get(key) ?? from, from))
  }

  #dropOverflowing(chat: QueuedChat): void {
    const overflowing = chat.takeOverflowing()
    for (const { id } of overflowing) this.#known.delete(id)
    this.skippedRows += overflowing.length
    if (overflowing.length > 0 && chat.messages.length === 0) this.#closeChat(chat)
  }
}
