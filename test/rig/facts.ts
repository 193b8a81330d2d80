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
  /** Likewise, the whole text of each incoming message whose event carries its beginning only. */
  wholeTexts: ReadonlyMap<string, string>
}

/** A text that was answered 202. */
export interface AcceptedText {
  instanceId: string
  messageId: string
  text: string
  /** The phones on which it has to appear: one, or one of a group's members; empty: they cannot be looked at. */
  phones: readonly string[]
  /** Whom it was sent to, as the caller wrote it. */
  to: string
  /** Likewise, however it was written: the phone's own number, or the group. */
  chat: string
  /** `performance.now()` when it was offered first, and when its 202 was there. */
  offeredAt: number
  acceptedAt: number
  /** How far it gets: the phone of `15005550003` never confirms a message. */
  end: 'sent' | 'read'
}

/** A text that a contact wrote to an instance, or answered it with. No two have the same first line. */
export interface OfferedIncoming {
  instanceId: string
  text: string
  /** The number of the contact. */
  from: string
  group?: string
  /** Not known of an answer. */
  whatsappId?: string
  /** The instance could not read it before it had asked for it again: it stands where it became readable. */
  undecryptable: boolean
}

export interface IncomingText extends OfferedIncoming {
  /** How many WhatsApp had taken for the instance before it; null where that is not known. */
  place: number | null
  /** How often the instance asked for it again; also once it had it, where it came again. */
  askedFor?: number
}

/** One attempt as the receiver saw it. */
export interface Arrival {
  instanceId: string
  /** The header `webhook-id`. */
  eventId: string
  kind: string
  /** The message's id, or the first line of an incoming one. */
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
  /** How often the phone had to ask for it before it could read it. */
  askedFor?: number
}
