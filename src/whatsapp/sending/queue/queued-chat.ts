import type { MessageId } from '../../../domain/ids.ts'
import { shortSpelling } from '../../../domain/recipients/recipient.ts'
import type { QueuedMessage } from '../../../store/messages/messages.ts'
import { userOf } from '../../baileys/addresses.ts'

/** Longer messages take one more place in memory for each further part of this size. */
const BYTES_PER_PLACE = 4_096

/** A chat and its next messages, in the order of acceptance. The messages may name the chat by different addresses. */
export class QueuedChat {
  /** Other keys of the same chat. */
  readonly aliases = new Set<string>()
  readonly key: string
  messages: QueuedMessage[] = []
  /** Failed attempts to send the first message since the link was opened. */
  failures = 0
  /** No attempt starts before this moment (`performance.now()`). `Infinity`: the chat waits until it is woken. */
  notBefore = 0
  /** An incoming message from one of these numbers wakes the chat. */
  numbers: readonly string[] = []
  /** It pauses until the file of its first message is available. */
  awaitsFile = false
  /** Its rows from this `seq` on are not in memory, and none of them may be overtaken. `Infinity`: it has no such rows. */
  unreadFrom = Number.POSITIVE_INFINITY
  /** Messages being sent: more than one only if two chats turned out to be the same while both were sending. */
  readonly #claimed = new Set<MessageId>()
  /** Claimed messages that may have reached the socket. */
  readonly #written = new Set<MessageId>()

  constructor(key: string) {
    this.key = key
  }

  get isBusy(): boolean {
    return this.#claimed.size > 0
  }

  /** The places that its messages take in memory. */
  get places(): number {
    return this.messages.reduce((sum, message) => sum + placesOf(message), 0)
  }

  claim({ id }: QueuedMessage): void {
    this.#claimed.add(id)
  }

  unclaim({ id }: QueuedMessage): void {
    this.#claimed.delete(id)
    this.#written.delete(id)
  }

  /** Call before writing the message. @returns false if another message of this chat goes first */
  beginWrite({ id, seq }: QueuedMessage): boolean {
    if (this.messages[0]?.id !== id || this.unreadFrom < seq) return false
    for (const other of this.#written) if (other !== id) return false
    this.#written.add(id)
    return true
  }

  insert(message: QueuedMessage): void {
    let index = this.messages.length
    while (index > 0 && (this.messages[index - 1]?.seq ?? 0) > message.seq) index -= 1
    this.messages.splice(index, 0, message)
  }

  /** @returns false if the message was not here */
  remove({ id }: Pick<QueuedMessage, 'id'>): boolean {
    const index = this.messages.findIndex(message => message.id === id)
    if (index < 0) return false
    if (index === 0 || this.#claimed.has(id)) {
      this.failures = 0
      this.notBefore = 0
    }
    this.messages.splice(index, 1)
    return true
  }

  /** Later messages must not be sent before the row with this number. */
  skipFrom(seq: number): void {
    this.unreadFrom = Math.min(this.unreadFrom, seq)
  }

  /** Removes and returns the messages that come after a row that is not in memory, except claimed ones. */
  takeUnread(): QueuedMessage[] {
    const taken = this.messages.filter(({ id, seq }) => seq >= this.unreadFrom && !this.#claimed.has(id))
    this.messages = this.messages.filter(message => !taken.includes(message))
    return taken
  }

  /** Merges another chat that turned out to be the same. */
  absorb(other: QueuedChat): void {
    for (const alias of [other.key, ...other.aliases]) this.aliases.add(alias)
    for (const id of other.#claimed) this.#claimed.add(id)
    for (const id of other.#written) this.#written.add(id)
    this.messages = [...this.messages, ...other.messages].sort((one, two) => one.seq - two.seq)
    this.failures = Math.max(this.failures, other.failures)
    this.notBefore = Math.min(this.notBefore, other.notBefore)
    this.numbers = [...this.numbers, ...other.numbers]
    this.skipFrom(other.unreadFrom)
  }
}

/** How many places a message takes in memory: one, unless it is long. */
export function placesOf({ bytes }: Pick<QueuedMessage, 'bytes'>): number {
  return Math.max(1, Math.ceil(bytes / BYTES_PER_PLACE))
}

/**
 * The key of a chat: equal for all spellings of a number and for its address, so the order holds before the number is
 * looked up. Two people whose numbers differ only in the optional digit share a key, and their messages wait for each other.
 * @param to a recipient as the caller wrote it, or an address
 */
export function chatKeyOf(to: string): string {
  if (to.endsWith('@g.us') || to.endsWith('lid')) return to
  return shortSpelling(userOf(to) ?? to)
}
