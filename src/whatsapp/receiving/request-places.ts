/** Concurrent requests of one instance. */
const AT_ONCE = 16
/** Concurrent requests of one chat. A contact cannot take all places with files that do not exist. */
const OF_A_CHAT = 4
/** A place is taken for at least this long, because each request costs the phone a message. */
const TAKEN_FOR_MS = 10_000

interface RequestPlace {
  /** Call when the request has ended. The place becomes free ten seconds after it was taken, or now if that is later. */
  free(): void
}

/** Limits the concurrent requests to the linked phone to upload files again. */
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
