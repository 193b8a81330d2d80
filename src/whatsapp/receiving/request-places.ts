/** Requests to the phone at once, of one instance. */
const AT_ONCE = 16
/** Of one chat, so that a contact cannot take all places with files that exist nowhere. */
const OF_A_CHAT = 4
/** Each request costs the phone a message. */
const TAKEN_FOR_MS = 10_000

export interface RequestPlace {
  /** The request has ended. Its place is free once it was taken for ten seconds. */
  free(): void
}

/** Who may ask the linked phone to upload a file again. */
export class RequestPlaces {
  readonly #taken = new Set<{ chat: string; freeAt: number }>()
  readonly #now: () => number

  /** @param now milliseconds on a clock that never jumps */
  constructor(now = () => performance.now()) {
    this.#now = now
  }

  /** @returns null if no place is free */
  take(chat: string): RequestPlace | null {
    const now = this.#now()
    for (const each of this.#taken) if (each.freeAt <= now) this.#taken.delete(each)
    const ofChat = [...this.#taken].filter(each => each.chat === chat).length
    if (this.#taken.size >= AT_ONCE || ofChat >= OF_A_CHAT) return null
    const place = { chat, freeAt: Number.POSITIVE_INFINITY }
    this.#taken.add(place)
    const free = () => {
      place.freeAt = now + TAKEN_FOR_MS
    }
    return { free }
  }
}
