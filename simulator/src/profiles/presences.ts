import { BoundedMap } from '../bounded-map.ts'
import type { ContactTyping, PhonePresence } from '../types.ts'

export interface Presence {
  available: boolean
  /** Seconds since the epoch. Undefined: hidden, or never. */
  lastSeen?: number | undefined
}

/** How many of each kind are remembered in the whole network. */
const MAX_ENTRIES = 10_000

interface Typing {
  reader: string
  shown: PhonePresence['typing'][number]
}

/** Who is online and who is typing, as far as it is known. Kept in memory only. */
export class Presences {
  /** The presence of contacts, by account and number. */
  readonly #contacts = new BoundedMap<string, Presence>(MAX_ENTRIES)
  /** When clients were last available, by number of the account, in seconds since the epoch. */
  readonly #lastSeen = new BoundedMap<string, number>(MAX_ENTRIES)
  /** Who types, by reader, chat and writer. */
  readonly #typing = new BoundedMap<string, Typing>(MAX_ENTRIES)

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
    this.#typing.set(`${reader}/${group ?? ''}/${from}`, { reader, shown: { from, ...(group && { group }), state } })
  }

  typingOn(number: string): PhonePresence['typing'] {
    return [...this.#typing.values()].flatMap(({ reader, shown }) => (reader === number ? [shown] : []))
  }

  /** Forgets what an account has seen of others, and others of it. */
  forget(phone: string): void {
    this.#lastSeen.delete(phone)
    for (const key of this.#contacts.keys()) if (key.startsWith(`${phone}/`)) this.#contacts.delete(key)
    for (const [key, { reader, shown }] of this.#typing)
      if (reader === phone || shown.from === phone) this.#typing.delete(key)
  }
}
