import type { MessageId } from '../../domain/ids.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'

/** A chat with the next messages to it, in the order accepted, whichever of its addresses they name. */
export class QueuedChat {
  /** Chats known under other keys that turned out to be this one. */
  readonly aliases = new Set<string>()
  key: string
  messages: QueuedMessage[] = []
  /** How often the first message was sent in vain since the link was opened. */
  failures: number
  /** Nothing is tried before; on the clock that never jumps. */
  notBefore = 0
  /** The first message that did not fit: what comes after it must not overtake it. */
  overflowFrom: number | null = null
  /** Being sent: one, or more where chats turned out to be the same one meanwhile. */
  readonly #inHand = new Set<MessageId>()
  /** Those of them that may have been written to the socket. */
  readonly #written = new Set<MessageId>()

  constructor(key: string, failures = 0) {
    this.key = key
    this.failures = failures
  }

  get isBusy(): boolean {
    return this.#inHand.size > 0
  }

  begin({ id }: QueuedMessage): void {
    this.#inHand.add(id)
  }

  finish({ id }: QueuedMessage): void {
    this.#inHand.delete(id)
    this.#written.delete(id)
  }

  isInHand({ id }: QueuedMessage): boolean {
    return this.#inHand.has(id)
  }

  /** To be asked before the message is written. False: another one of this chat comes first. */
  claim({ id, seq }: QueuedMessage): boolean {
    const isFirst = this.messages.every(other => other.id === id || other.seq > seq)
    const mayOvertake = this.overflowFrom !== null && this.overflowFrom < seq
    if (!isFirst || mayOvertake || [...this.#written].some(other => other !== id)) return false
    this.#written.add(id)
    return true
  }

  insert(message: QueuedMessage): void {
    let index = this.messages.length
    while (index > 0 && (this.messages[index - 1]?.seq ?? 0) > message.seq) index -= 1
    this.messages.splice(index, 0, message)
  }

  /** @returns whether it was here */
  remove({ id }: QueuedMessage): boolean {
    const index = this.messages.findIndex(message => message.id === id)
    if (index < 0) return false
    if (index === 0 || this.#inHand.has(id)) {
      this.failures = 0
      this.notBefore = 0
    }
    this.messages.splice(index, 1)
    return true
  }

  noteOverflow(seq: number): void {
    this.overflowFrom = Math.min(this.overflowFrom ?? Number.POSITIVE_INFINITY, seq)
  }

  /** Takes out what must not be here: it comes after a message that did not fit. What is in hand stays until it ends. */
  takeOverflowing(): QueuedMessage[] {
    const from = this.overflowFrom ?? Number.POSITIVE_INFINITY
    const taken = this.messages.filter(message => message.seq >= from && !this.isInHand(message))
    this.messages = this.messages.filter(message => !taken.includes(message))
    return taken
  }

  /** Both are the same chat. */
  absorb(other: QueuedChat): void {
    for (const alias of other.aliases) this.aliases.add(alias)
    for (const id of other.#inHand) this.#inHand.add(id)
    for (const id of other.#written) this.#written.add(id)
    this.messages = [...this.messages, ...other.messages].sort((one, two) => one.seq - two.seq)
    this.failures = Math.max(this.failures, other.failures)
    this.notBefore = Math.min(this.notBefore, other.notBefore)
    if (other.overflowFrom !== null) this.noteOverflow(other.overflowFrom)
  }
}
