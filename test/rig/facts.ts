/** What was seen from outside while the service was killed again and again: all that there is to judge by. */
export interface Facts {
  accepted: AcceptedText[]
  incoming: IncomingText[]
  /** In the order in which they came. */
  arrivals: Arrival[]
  /** What each phone that was written to shows, by number. */
  phones: ReadonlyMap<string, readonly PhoneEntry[]>
  /** What `GET /v1/messages/{id}` says in the end, by message id. */
  states: ReadonlyMap<string, string>
}

/** A text that was answered 202. */
export interface AcceptedText {
  instanceId: string
  messageId: string
  text: string
  /** The phones on which it has to appear: one, or one of a group's members; empty: they cannot be looked at. */
  phones: readonly string[]
  /** Whom it was sent to. */
  to: string
  /** `performance.now()` when it was offered first, and when its 202 was there. */
  offeredAt: number
  acceptedAt: number
  /** How far it gets: the phone of `15005550003` never tells that it has a message. */
  end: 'sent' | 'read'
}

/** A text that a contact wrote to an instance, or answered it with. No two are the same. */
export interface IncomingText {
  instanceId: string
  text: string
}

/** One attempt as the receiver saw it. */
export interface Arrival {
  instanceId: string
  /** The header `webhook-id`. */
  eventId: string
  kind: string
  /** The message's id, or the text of an incoming one. */
  subject: string
  body: string
  /** Both signatures verify. */
  signed: boolean
  attemptNumber: number
  /** After how many incidents it came; where nothing but kills happens, which run of the service posted it, from 1. */
  boot: number
}

export interface PhoneEntry {
  id: string
  text: string
  /** How often this id arrived; a phone shows it once. */
  copies: number
  /** How often the phone had to ask for it before it could read it: it stands where it became readable. */
  askedFor?: number
}
