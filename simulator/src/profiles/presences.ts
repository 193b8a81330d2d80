import type { ContactTyping, PhonePresence } from '../types.ts'

export interface Presence {
  available: boolean
  /** Seconds since the epoch. Undefined: hidden, or never. */
  lastSeen?: number | undefined
}

/** Who is online and who is typing, as far as it is known. Kept in memory only. */
export class Presences {
  /** The presence of contacts, by account and number. */
  readonly #contacts = new Map<string, Presence>()
  /** When clients were last available, by number of the account, in seconds since the epoch. */
  readonly #lastSeen = new Map<string, number>()
  /** Who types on the phone of a number, by chat and writer. */
  readonly #typing = new Map<string, Map<string, PhonePresence['typing'][number]>>()

  ofContact(viewer: string, number: string): Presence {
    return this.#contacts.get(`${viewer}/${number}`) ?? { available: false }
  }

  setContact(viewer: string, number: string, presence: Presence): void {
    this.#contacts.set(`${viewer}/${number}`, presence)
  }

  lastSeen(phone: string): number | undefined {
    return this.#lastSeen.get(phone)
  }

  noteLastSeen(phone: string): void {
    this.#lastSeen.set(phone, Math.floor(Date.now() / 1000))
  }

  setTyping(reader: string, from: string, group: string | undefined, state: ContactTyping['state']): void {
    const known = this.#typing.get(reader) ?? new Map()
    this.#typing.set(reader, known.set(`${group ?? ''}/${from}`, { from, ...(group && { group }), state }))
  }

  typingOn(reader: string): PhonePresence['typing'] {
    return [...(this.#typing.get(reader)?.values() ?? [])]
  }
}
