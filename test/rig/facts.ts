/** Everything that was observed from outside during a run. The judge uses nothing else. */
export interface Facts {
  accepted: AcceptedText[]
  incoming: IncomingText[]
  /** In the order of arrival. */
  arrivals: Arrival[]
  /** What the phone of each recipient shows, by number. */
  phones: ReadonlyMap<string, readonly PhoneEntry[]>
  /** The state in `GET /v1/messages/{id}` at the end, by message ID. */
  states: ReadonlyMap<string, string>
  /** The whole text of each incoming message whose event was truncated, by message ID. */
  wholeTexts: ReadonlyMap<string, string>
}

/** A text that was answered 202. */
export interface AcceptedText {
  instanceId: string
  messageId: string
  text: string
  /** The phones on which it must appear: the recipient's, or that of one group member. Empty if phones cannot be read. */
  phones: readonly string[]
  /** The recipient as the caller wrote it. */
  to: string
  /** The chat, whatever the spelling: the phone's own number, or the group. */
  chat: string
  /** `performance.now()` at the first call and at its 202. */
  offeredAt: number
  acceptedAt: number
  /** The last state that it reaches: the phone of `15005550003` sends no receipts. */
  end: 'sent' | 'read'
}

/** A text that a contact wrote to an instance, or a reply to one. No two have the same first line. */
export interface OfferedIncoming {
  instanceId: string
  text: string
  /** The number of the contact. */
  from: string
  group?: string
  /** Unknown for a reply. */
  whatsappId?: string
  /** The instance had to request it again. It is ordered by the moment at which it became readable. */
  undecryptable: boolean
}

export interface IncomingText extends OfferedIncoming {
  /** Its position among the texts that WhatsApp accepted for the instance. Null if unknown. */
  place: number | null
  /** How often the instance requested it again, including after it was recorded. */
  askedFor?: number
}

/** A webhook attempt as the receiver saw it. */
export interface Arrival {
  instanceId: string
  /** The header `webhook-id`. */
  eventId: string
  kind: string
  /** The message's ID. For an incoming message, the first line of its text. */
  subject: string
  body: string
  /** Both signatures verify. */
  signed: boolean
  attemptNumber: number
  /** The number of incidents before it. If the only incidents are kills: the run of the service that posted it, from 1. */
  boot: number
}

export interface PhoneEntry {
  id: string
  text: string
  /** How often this ID arrived. A phone shows it once. */
  copies: number
  /** How often the phone requested it again before it could read it. */
  askedFor?: number
}
