import { proto } from 'baileys/WAProto/index.js'
import { DELETE_WITHIN_MS, EDIT_WITHIN_MS } from '../contacts/conversation.ts'
import type { Records } from '../signal/records.ts'
import type { ReceivedMessage } from '../types.ts'

/** What the phones of one scope remember together. They do not recognise a second copy of an older message. */
const MAX_MESSAGES = 100_000
const MAX_BYTES = 64 * 2 ** 20
/** The part of both that remains when the oldest messages are forgotten. */
const KEPT = 0.95
const DIGITS = 12

interface Entry {
  sequence: number
  message: ReceivedMessage
  /** The encoded message, in base64. */
  content?: string | undefined
}

export type NewMessage = Omit<ReceivedMessage, 'copies'>

/** The messages on the simulated phones of one scope, by number. */
export class Inboxes {
  readonly #records: Records
  readonly #isAdmin: (group: string, number: string) => boolean
  readonly #byNumber = new Map<string, Map<string, Entry>>()
  #lastSequence = 0
  #count = 0
  #bytes = 0

  /** @param isAdmin whether this number is an admin of the group */
  constructor(records: Records, isAdmin: (group: string, number: string) => boolean) {
    this.#records = records
    this.#isAdmin = isAdmin
  }

  /** Entries must be restored in the order of their keys. */
  restore(key: string, text: string): void {
    const [, number, sequence] = key.split('/')
    const { content, ...message } = JSON.parse(text) as ReceivedMessage & Pick<Entry, 'content'>
    this.#lastSequence = Math.max(this.#lastSequence, Number(sequence))
    this.#keep(number!, { sequence: Number(sequence), message, content })
  }

  /** Counts another copy of a message that the phone has. Returns false if it has none with this ID. */
  receiveAgain(number: string, id: string): boolean {
    const known = this.#byNumber.get(number)?.get(id)
    if (known) this.receive(number, known.message)
    return known !== undefined
  }

  /**
   * Returns true if this is the first copy on the phone of `number`.
   * @param content the encoded message
   */
  receive(number: string, message: NewMessage, content?: Buffer): boolean {
    const inbox = this.#of(number)
    const known = inbox.get(message.id)
    const entry: Entry = known ?? {
      sequence: ++this.#lastSequence,
      message: { ...message, copies: 0 },
      content: content?.toString('base64'),
    }
    entry.message.copies++
    if (!known) this.#keep(number, entry)
    this.#record(number, entry)
    if (!known) this.#applyActions(number, message)
    if (this.#count > MAX_MESSAGES || this.#bytes > MAX_BYTES) this.#forgetOldest()
    return known === undefined
  }

  /** Records that another device of `number` has read the message too. */
  markRead(number: string, id: string, device: number): void {
    const entry = this.#of(number).get(id)
    if (!entry || entry.message.companions?.includes(device)) return
    entry.message.companions = [...(entry.message.companions ?? []), device]
    this.#record(number, entry)
  }

  /** Records that the linked client of `number` could not read the message and has asked for it again. */
  noteAskedFor(number: string, id: string): void {
    const entry = this.#of(number).get(id)
    if (!entry) return
    entry.message.askedFor = (entry.message.askedFor ?? 0) + 1
    this.#record(number, entry)
  }

  /** A message on any phone of this scope. Null if none has it. */
  find(id: string): ReceivedMessage | null {
    return this.#entry(id)?.message ?? null
  }

  /** The encoded message with this ID on any phone of this scope. Null if no phone has it. */
  contentOf(id: string): Buffer | null {
    const content = this.#entry(id)?.content
    return content === undefined ? null : Buffer.from(content, 'base64')
  }

  /**
   * Applies the action to the message that it names, on the phone of `number` or, if that lacks it, on every phone that
   * has it.
   */
  #applyActions(number: string, action: NewMessage): void {
    const { reaction, edit, deletes, vote } = action
    const id = reaction?.to ?? edit?.id ?? deletes ?? vote?.poll
    if (id === undefined) return
    const owners = this.#byNumber.get(number)?.has(id) ? [number] : this.#byNumber.keys()
    for (const owner of owners) {
      const target = this.#byNumber.get(owner)?.get(id)
      if (!target) continue
      this.#applyTo(target.message, action)
      this.#record(owner, target)
    }
  }

  #applyTo(message: ReceivedMessage, action: NewMessage): void {
    const { from, reaction, edit, deletes, vote } = action
    if (reaction?.emoji) message.reactions = { ...message.reactions, [from]: reaction.emoji }
    else if (reaction) delete message.reactions?.[from]
    else if (edit && mayEdit(message, action)) message.edited = edit.text
    else if (deletes && this.#mayDelete(message, action)) message.deleted = true
    else if (vote?.options) message.votes = { ...message.votes, [from]: vote.options }
  }

  /** The author may delete a message, and so may an admin of the group who names the author. */
  #mayDelete(message: ReceivedMessage, { from, group, deletesOf, receivedAt }: NewMessage): boolean {
    if (receivedAt - message.receivedAt > DELETE_WITHIN_MS) return false
    if (message.from === from) return true
    return group !== undefined && message.group === group && deletesOf === message.from && this.#isAdmin(group, from)
  }

  #entry(id: string): Entry | undefined {
    for (const inbox of this.#byNumber.values()) if (inbox.has(id)) return inbox.get(id)
    return undefined
  }

  #record(number: string, { sequence, message, content }: Entry): void {
    this.#records.put(recordKey(number, sequence), () => JSON.stringify({ ...message, content }))
  }

  /** @param whole with the whole content of each message */
  list(number: string, whole = false): ReceivedMessage[] {
    return Array.from(this.#byNumber.get(number)?.values() ?? [], ({ message, content }) => ({
      ...message,
      ...(whole && content && { message: asJson(Buffer.from(content, 'base64')) }),
    }))
  }

  /** The messages of `author` on all phones of this scope, each with the number of its phone. */
  writtenBy(author: string): { reader: string; message: ReceivedMessage }[] {
    return Array.from(this.#byNumber.keys()).flatMap(reader =>
      this.list(reader).flatMap(message => (message.from === author ? [{ reader, message }] : [])),
    )
  }

  #of(number: string): Map<string, Entry> {
    const known = this.#byNumber.get(number)
    if (known) return known
    const inbox = new Map<string, Entry>()
    this.#byNumber.set(number, inbox)
    return inbox
  }

  #keep(number: string, entry: Entry): void {
    this.#of(number).set(entry.message.id, entry)
    this.#count++
    this.#bytes += sizeOf(entry)
  }

  #forgetOldest(): void {
    const all = Array.from(this.#byNumber, ([number, inbox]) =>
      Array.from(inbox.values(), entry => ({ number, entry })),
    )
    for (const { number, entry } of all.flat().sort((a, b) => a.entry.sequence - b.entry.sequence)) {
      if (this.#count <= KEPT * MAX_MESSAGES && this.#bytes <= KEPT * MAX_BYTES) return
      const inbox = this.#of(number)
      inbox.delete(entry.message.id)
      if (inbox.size === 0) this.#byNumber.delete(number)
      this.#count--
      this.#bytes -= sizeOf(entry)
      this.#records.drop(recordKey(number, entry.sequence))
    }
  }
}

/** Roughly how much memory the longest parts of a message take, in bytes. */
function sizeOf({ message, content = '' }: Entry): number {
  return message.text.length + content.length
}

function mayEdit(message: ReceivedMessage, { from, receivedAt }: NewMessage): boolean {
  return message.from === from && receivedAt - message.receivedAt <= EDIT_WITHIN_MS
}

function asJson(content: Buffer): Record<string, unknown> {
  const message = proto.Message.decode(content)
  return JSON.parse(JSON.stringify(message.deviceSentMessage?.message ?? message))
}

function recordKey(number: string, sequence: number): string {
  return `inbox/${number}/${sequence.toString().padStart(DIGITS, '0')}`
}
