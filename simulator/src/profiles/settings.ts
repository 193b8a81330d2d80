import type { Records } from '../signal/records.ts'
import type { Profile } from './profile.ts'

/** The categories of privacy, with the allowed values. The first one is the default. */
export const PRIVACY = {
  readreceipts: ['all', 'none'],
  last: ['all', 'contacts', 'none'],
  online: ['all', 'match_last_seen'],
  profile: ['all', 'contacts', 'none'],
  status: ['all', 'contacts', 'none'],
  groupadd: ['all', 'contacts', 'none'],
  calladd: ['all', 'known', 'contacts'],
  messages: ['all', 'contacts'],
  defense: ['off', 'on_standard'],
} as const satisfies Record<string, readonly string[]>

export type PrivacyCategory = keyof typeof PRIVACY

interface Stored {
  profile: Profile
  privacy: Partial<Record<PrivacyCategory, string>>
  blocked: string[]
  /** The timer of new chats, in seconds. */
  timer?: { duration: number; at: number }
  /** By number. */
  contacts: Record<string, Profile>
}

const KEY = 'settings'

/** An account's own settings on WhatsApp's server, and the profiles of its contacts. */
export class Settings {
  readonly #records: Records
  #stored: Stored = { profile: {}, privacy: {}, blocked: [], contacts: {} }

  constructor(records: Records) {
    this.#records = records
  }

  restore(text: string): void {
    this.#stored = JSON.parse(text)
  }

  get profile(): Profile {
    return this.#stored.profile
  }

  set profile(profile: Profile) {
    this.#change({ profile })
  }

  get blocked(): readonly string[] {
    return this.#stored.blocked
  }

  set blocked(blocked: readonly string[]) {
    this.#change({ blocked: [...blocked] })
  }

  get timer(): { duration: number; at: number } {
    return this.#stored.timer ?? { duration: 0, at: 0 }
  }

  set timer(timer: { duration: number; at: number }) {
    this.#change({ timer })
  }

  blocks(number: string): boolean {
    return this.#stored.blocked.includes(number)
  }

  privacy(category: PrivacyCategory): string {
    return this.#stored.privacy[category] ?? PRIVACY[category][0]
  }

  setPrivacy(category: PrivacyCategory, value: string): void {
    this.#change({ privacy: { ...this.#stored.privacy, [category]: value } })
  }

  contact(number: string): Profile {
    return this.#stored.contacts[number] ?? {}
  }

  setContact(number: string, profile: Profile): void {
    this.#change({ contacts: { ...this.#stored.contacts, [number]: profile } })
  }

  /** The number of the contact with this username. */
  findUsername(username: string): string | null {
    const found = Object.entries(this.#stored.contacts).find(([, one]) => one.username === username)
    return found?.[0] ?? null
  }

  #change(part: Partial<Stored>): void {
    this.#stored = { ...this.#stored, ...part }
    this.#records.put(KEY, () => JSON.stringify(this.#stored))
  }
}
