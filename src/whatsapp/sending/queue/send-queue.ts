import type { MessageId } from '../../../domain/ids.ts'
import { QUEUED_PAGE_BYTES, type QueuedMessage } from '../../../store/messages/messages.ts'
import { chatKeyOf, placesOf, QueuedChat } from './queued-chat.ts'
import { ReadHistory } from './read-history.ts'

/** Rows in one page. */
const PAGE = 256
/** Places in memory for the messages of one chat. A long message takes several, and the last one may exceed the limit. */
const MAX_PER_CHAT = 64
/** Places in memory for all messages. The last page may exceed the limit. */
const MAX_PLACES = 2_048
/** With this many chats, deferred ones included, no row is read that could open another. */
const MAX_CHATS = 20_000
/** With fewer places in use, the next rows of the chat are read. */
const LOW = 16
/** At most this many numbers are listed and compared in one query. */
const COMPARED_AT_ONCE = 4_096

const NEVER = Number.POSITIVE_INFINITY

/** Where the next read starts: after the last row that was read, with the rows that were committed late, or at the first row. */
export type ReadFrom = 'next' | 'start'

/** The queued rows in the store, in the order of their numbers. */
export interface QueuedRows {
  /** @returns fewer than `limit` rows if no more follow, or if these have `QUEUED_PAGE_BYTES` together */
  list(afterSeq: number, limit: number): Promise<readonly QueuedMessage[]>
  /** @returns at most `limit` numbers above `afterSeq`, up to `toSeq` */
  listNumbers(afterSeq: number, toSeq: number, limit: number): Promise<readonly number[]>
}

/**
 * The send queue in memory: chats with their next messages. It is a cache of the queued rows, which are read in pages, in
 * order. For each chat it holds the messages before `unreadFrom`. The page that contains the first unread row of a chat
 * adds to the chat if it has space. Without space, the rows are skipped. They are read again when the chat runs low.
 *
 * A deferred chat keeps nothing in memory, so it takes no space from the others.
 *
 * Two recipients become one chat when a stored address or WhatsApp's answer shows that they are the same. They stay one
 * while the chat is in the queue.
 */
export class SendQueue {
  readonly #chats = new Map<string, QueuedChat>()
  /** The key of the chat, by the key of a recipient or address that has joined another chat. */
  readonly #joined = new Map<string, string>()
  /** The messages in memory, with the places that they take. */
  readonly #known = new Map<MessageId, number>()
  #placesInUse = 0
  /** Messages removed while a page is read: the page may still show them as queued. Null while no page is read. */
  #removed: Set<MessageId> | null = null
  /** The next read starts after this row or earlier; Infinity: no row is read again. */
  #restartFrom = NEVER
  /** The next read looks for late rows above this number; Infinity: none was requested. */
  #overlapFrom = NEVER
  /** Null: no row is committed late. */
  readonly #history: ReadHistory | null
  /** Every row up to this number has been read: it is in memory, or not before `unreadFrom` of its chat. */
  #readTo = 0
  /** Rows may follow `#readTo`. */
  #mayHaveMore = false
  /** The first unread row of all chats that run low. */
  #refillFrom = NEVER
  /** Rows of unread chats that were skipped since the last read from the start. */
  skippedRows = 0
  readonly #pageRows: number

  /** @param options `rowsComeLate`: a row may be committed after rows with higher numbers have been read, as on several nodes */
  constructor({ rowsComeLate = true, pageRows = PAGE }: { rowsComeLate?: boolean; pageRows?: number } = {}) {
    this.#history = rowsComeLate ? new ReadHistory() : null
    this.#pageRows = pageRows
  }

  chats(): Iterable<QueuedChat> {
    return this.#chats.values()
  }

  /** Null if no queued message of the chat is known. */
  chatOf({ to }: Pick<QueuedMessage, 'to'>): QueuedChat | null {
    return this.#chats.get(this.#keyOf(to)) ?? null
  }

  get size(): number {
    return this.#known.size
  }

  get isFull(): boolean {
    return this.#placesInUse >= MAX_PLACES
  }

  /** The message with this WhatsApp ID, if it is the next one of its chat and not being sent. */
  findWaiting(whatsappId: string): QueuedMessage | null {
    for (const { isBusy, messages } of this.#chats.values()) {
      if (!isBusy && messages[0]?.whatsappId === whatsappId) return messages[0]
    }
    return null
  }

  /** Call before writing the message to this address. @returns false if another message of the same chat goes first */
  beginWrite(message: QueuedMessage, address: string): boolean {
    return this.#join(message.to, address).beginWrite(message)
  }

  /** The attempt to send the message is over. */
  unclaim(message: QueuedMessage): void {
    const chat = this.chatOf(message)
    if (!chat) return
    chat.unclaim(message)
    this.#update(chat)
  }

  /** The outcome is known. The next message of the chat may be sent while it is recorded. */
  settle(message: Pick<QueuedMessage, 'id' | 'to'>): void {
    const chat = this.chatOf(message)
    if (chat?.remove(message)) this.#update(chat)
  }

  /** The outcome is recorded, so the row is no longer queued. */
  remove(message: Pick<QueuedMessage, 'id' | 'to'>): void {
    this.#removed?.add(message.id)
    this.settle(message)
    this.#forget(message)
  }

  // ── Chats that wait ───────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Removes the messages of a chat from memory, except claimed ones. They are read again once the chat is woken, or by the first
   * poll after `until` (`performance.now()`).
   * @param numbers an incoming message from one of them wakes the chat
   */
  defer(chat: QueuedChat, until = NEVER, numbers: readonly string[] = []): void {
    chat.skipFrom(chat.messages[0]?.seq ?? NEVER)
    chat.notBefore = until
    chat.numbers = numbers
    this.#update(chat)
  }

  /** @returns false if the chat of this message is not deferred */
  wakeDeferredChat(message: QueuedMessage): boolean {
    const chat = this.chatOf(message)
    if (chat?.notBefore !== NEVER) return false
    this.#retry(chat)
    return true
  }

  /** Wakes the chats that are deferred for this number, or for any number. */
  wakeDeferred(number?: string): void {
    for (const chat of this.#chats.values()) {
      if (chat.notBefore === NEVER && (number === undefined || chat.numbers.includes(number))) this.#retry(chat)
    }
  }

  /** Call when a link opens: chats that wait for a retry are tried immediately. */
  resetBackoff(): void {
    for (const chat of this.#chats.values()) {
      chat.failures = 0
      if (chat.notBefore < NEVER) this.#retry(chat)
    }
  }

  /** A file may be available: chats that wait for one try again. Deferred chats follow when they are read again. */
  wakeAwaitingFile(): void {
    for (const chat of this.#chats.values()) if (chat.awaitsFile) this.#retry(chat)
  }

  #retry(chat: QueuedChat): void {
    chat.awaitsFile = false
    chat.notBefore = 0
    this.#update(chat)
  }

  // ── Reading ───────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * There may be new rows, or the pause of a chat may be over.
   * @param to recipient of the new rows, which are read after the earlier unread rows of its chat
   */
  requestRead(from: ReadFrom, to?: string): void {
    // Looked up now: if the read comes late, a row that is committed now is still within the overlap.
    if (from === 'next' && this.#history)
      this.#overlapFrom = Math.min(this.#overlapFrom, this.#history.settledTo(performance.now()))
    if (from === 'start') this.#restartFrom = 0
    const chat = to === undefined ? null : this.chatOf({ to })
    if (chat !== null && chat.unreadFrom < NEVER) this.skippedRows += 1
    else this.#mayHaveMore = true
    if (from === 'start') for (const one of this.#chats.values()) this.#update(one)
  }

  /** True if there may be rows that are not in memory, and space for them. */
  get wantsMore(): boolean {
    return !this.isFull && (this.#refillFrom < NEVER || (this.#mayHaveMore && this.#chats.size < MAX_CHATS))
  }

  /**
   * Reads pages while there may be more rows, and space for them.
   * @param onPage called after each page; returns false to stop
   */
  async read(queued: QueuedRows, onPage: () => boolean): Promise<void> {
    // Only before the first page: if hints kept moving the position back, the read would never end.
    if (this.#restartFrom === 0) this.skippedRows = 0
    this.#readTo = Math.min(this.#readTo, this.#restartFrom)
    this.#restartFrom = NEVER
    let overlapFrom = NEVER
    try {
      for (let isLast = false; !isLast; ) {
        const after = Math.min(this.#readTo, this.#refillFrom - 1)
        // A request during the read sets these again.
        if (after === this.#readTo) this.#mayHaveMore = false
        overlapFrom = Math.min(overlapFrom, this.#overlapFrom)
        this.#overlapFrom = NEVER
        this.#removed = new Set()
        const rows = await queued.list(after, this.#pageRows)
        isLast = rows.length < this.#pageRows && sizeOf(rows) < QUEUED_PAGE_BYTES
        if (this.#history) {
          // Compared after the page was read, so a row that was committed before any row of the page is found.
          const late = await this.#findLate(queued, this.#history, Math.min(overlapFrom, this.#overlapFrom))
          // This comparison has covered the rows up to the settled position. No more of them can appear.
          overlapFrom = Math.max(overlapFrom, this.#history.settledTo(performance.now()))
          if (late !== null) {
            this.#readTo = late - 1
            this.#mayHaveMore = true
            isLast = false
            continue
          }
        }
        this.#addPage(after, rows, isLast)
        if (!onPage() || !this.wantsMore) return
      }
    } catch (error) {
      this.#mayHaveMore = true
      this.#overlapFrom = Math.min(this.#overlapFrom, overlapFrom)
      throw error
    } finally {
      this.#removed = null
    }
  }

  /** @returns the lowest row above `from` that was committed late, or null */
  async #findLate({ listNumbers }: QueuedRows, history: ReadHistory, from: number): Promise<number | null> {
    for (let after = from; after < this.#readTo; ) {
      const numbers = await listNumbers(after, this.#readTo, COMPARED_AT_ONCE)
      const late = history.firstUnread(numbers)
      if (late !== null || numbers.length < COMPARED_AT_ONCE) return late
      after = numbers.at(-1)!
    }
    return null
  }

  #addPage(after: number, rows: readonly QueuedMessage[], isLast: boolean): void {
    const lastSeq = rows.at(-1)?.seq ?? 0
    const pageTo = isLast ? NEVER : lastSeq
    const now = performance.now()
    const resumed: string[] = []
    for (const chat of this.#chats.values()) {
      const { notBefore, unreadFrom } = chat
      if (unreadFrom <= after || unreadFrom > pageTo || notBefore > now) continue
      if (chat.places >= MAX_PER_CHAT) continue
      chat.unreadFrom = NEVER
      resumed.push(chat.key)
    }
    for (const message of rows) this.#add(message)
    // The rows of the resumed chats between this page and `#readTo` are not in memory.
    if (pageTo < this.#readTo) for (const key of resumed) this.chatOf({ to: key })?.skipFrom(pageTo + 1)
    else if (!isLast) this.#mayHaveMore = true
    this.#readTo = Math.max(this.#readTo, lastSeq)
    this.#history?.note(rows, now)
    this.#refillFrom = NEVER
    for (const chat of this.#chats.values()) this.#update(chat)
  }

  #add(message: QueuedMessage): void {
    if (this.#known.has(message.id) || this.#removed?.has(message.id)) return
    let chat = this.#open(this.#keyOf(message.to))
    for (const address of [message.foundAddress, message.prepared?.address]) {
      if (address) chat = this.#join(message.to, address)
    }
    if (chat.places >= MAX_PER_CHAT) chat.skipFrom(message.seq)
    if (message.seq >= chat.unreadFrom) {
      this.skippedRows += 1
      return
    }
    const places = placesOf(message)
    this.#known.set(message.id, places)
    this.#placesInUse += places
    chat.insert(message)
  }

  #forget({ id }: Pick<QueuedMessage, 'id'>): void {
    this.#placesInUse -= this.#known.get(id) ?? 0
    this.#known.delete(id)
  }

  /** Call after each change: drops messages that come after an unread one, and the chat if it has none. */
  #update(chat: QueuedChat): void {
    if (chat.unreadFrom < NEVER) {
      for (const message of chat.takeUnread()) {
        this.#forget(message)
        this.skippedRows += 1
      }
      const isLow = chat.places < LOW && chat.notBefore <= performance.now()
      if (isLow) this.#refillFrom = Math.min(this.#refillFrom, chat.unreadFrom)
    } else if (chat.messages.length === 0) {
      this.#chats.delete(chat.key)
      for (const alias of chat.aliases) this.#joined.delete(alias)
    }
  }

  #open(key: string): QueuedChat {
    const chat = this.#chats.get(key) ?? new QueuedChat(key)
    this.#chats.set(key, chat)
    return chat
  }

  // ── Recipients that are the same chat ─────────────────────────────────────────────────────────────────────────

  /** Two names turned out to belong to one person. */
  noteSame(one: string, other: string): void {
    if (this.chatOf({ to: one }) && this.chatOf({ to: other })) this.#update(this.#join(one, other))
  }

  #keyOf(to: string): string {
    let key = chatKeyOf(to)
    for (let next = this.#joined.get(key); next !== undefined; next = this.#joined.get(key)) key = next
    return key
  }

  #join(to: string, address: string): QueuedChat {
    const chat = this.#open(this.#keyOf(to))
    const other = this.#open(this.#keyOf(address))
    if (chat === other) return chat
    chat.absorb(other)
    this.#chats.delete(other.key)
    this.#joined.set(other.key, chat.key)
    return chat
  }
}

function sizeOf(rows: readonly QueuedMessage[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0)
}
