import type { Records } from '../signal/records.ts'
import type { ReceivedMessage } from '../types.ts'

/** How many messages a phone remembers. It does not recognise a second copy of an older one. */
const MAX_MESSAGES = 20_000
const DIGITS = 12

interface Entry {
  sequence: number
  message: ReceivedMessage
  /** Of a media message: the encoded message, in base64. */
  content?: string | undefined
}

/** The messages on the simulated phones of one scope, by number. */
export class Inboxes {
  readonly #records: Records
  readonly #byNumber = new Map<string, Map<string, Entry>>()
  #lastSequence = 0

  constructor(records: Records) {
    this.#records = records
  }

  /** Entries must be restored in the order of their keys. */
  restore(key: string, text: string): void {
    const [, number, sequence] = key.split('/')
    const { content, ...message } = JSON.parse(text) as ReceivedMessage & Pick<Entry, 'content'>
    this.#lastSequence = Math.max(this.#lastSequence, Number(sequence))
    this.#of(number!).set(message.id, { sequence: Number(sequence), message, content })
  }

  /** Counts another copy of a message that the phone has. Returns false if it has none with this ID. */
  receiveAgain(number: string, id: string): boolean {
    const known = this.#byNumber.get(number)?.get(id)
    if (known) this.receive(number, known.message)
    return known !== undefined
  }

  /**
   * Returns true if this is the first copy on the phone of `number`.
   * @param content of a media message: the encoded message
   */
  receive(number: string, message: Omit<ReceivedMessage, 'copies'>, content?: Buffer): boolean {
    const inbox = this.#of(number)
    const known = inbox.get(message.id)
    const entry: Entry = known ?? {
      sequence: ++this.#lastSequence,
      message: { ...message, copies: 0 },
      content: content?.toString('base64'),
    }
    entry.message.copies++
    inbox.set(message.id, entry)
    this.#record(number, entry)
    if (inbox.size > MAX_MESSAGES) this.#forgetOldest(number, inbox)
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

  /** The encoded content of a media message on any phone of this scope. Null if no phone has it. */
  mediaContent(id: string): Buffer | null {
    const content = this.#entry(id)?.content
    return content === undefined ? null : Buffer.from(content, 'base64')
  }

  #entry(id: string): Entry | undefined {
    for (const inbox of this.#byNumber.values()) {
      const entry = inbox.get(id)
      if (entry) return entry
    }
    return undefined
  }

  #record(number: string, { sequence, message, content }: Entry): void {
    this.#records.put(recordKey(number, sequence), () => JSON.stringify({ ...message, content }))
  }

  list(number: string): ReceivedMessage[] {
    return Array.from(this.#byNumber.get(number)?.values() ?? [], entry => ({ ...entry.message }))
  }

  #of(number: string): Map<string, Entry> {
    const known = this.#byNumber.get(number)
    if (known) return known
    const inbox = new Map<string, Entry>()
    this.#byNumber.set(number, inbox)
    return inbox
  }

  #forgetOldest(number: string, inbox: Map<string, Entry>): void {
    const [id, oldest] = inbox.entries().next().value!
    inbox.delete(id)
    this.#records.drop(recordKey(number, oldest.sequence))
  }
}

function recordKey(number: string, sequence: number): string {
  return `inbox/${number}/${sequence.toString().padStart(DIGITS, '0')}`
}
