import type { IncomingFile } from './media.ts'
import { numberIn } from './recipients/recipient.ts'

export const INCOMING_TYPES = [
  'text',
  'image',
  'video',
  'audio',
  'document',
  'sticker',
  'location',
  'contact',
  'reaction',
  'poll',
  'other',
] as const
export type IncomingType = (typeof INCOMING_TYPES)[number]

/** The kind of address in `from` if it is not a phone number. `other`: neither phone nor LID, such as an assistant. */
export const ADDRESSINGS = ['lid', 'other'] as const
export type Addressing = (typeof ADDRESSINGS)[number]

/** The sender of a message or change, and the chat that it belongs to. */
interface Arrived {
  id: string
  /** The sender's number, digits only. If it is unknown, the digits of the sender's other address. */
  from: string
  /** Set only if `from` is not a phone number. */
  addressing?: Addressing
  /** The owner did it on another device. Then `from` is the instance's own number, and `chat` and `lid` name the other side. */
  written?: true
  /** The group, or the other side: its number if known, else its LID address. */
  chat: string
  /** The sender's LID address, `digits@lid`; null if unknown. */
  lid: string | null
  /** The sender's user name; null if unknown. */
  username: string | null
  /** The group's JID; absent outside groups. */
  group?: string
  /** WhatsApp's time, milliseconds since 1970. */
  sentAt: number
}

/** A message to the instance, or one that its owner wrote on another device (contract §4). */
export interface IncomingMessage extends Arrived {
  type: IncomingType
  /** The text, the caption or the reaction; absent if there is none. */
  text?: string
  /** The push name; absent if unknown. */
  name?: string
  /** The file of a media message. */
  file?: IncomingFile
  details?: IncomingDetails
  /** Who wrote the message that it quotes or reacts to, as it says. Absent if it does not say so. Not stored. */
  referencedAuthor?: ReferencedAuthor
}

/** `own`: the instance's number. Otherwise the known names of a person, numbers and LID addresses. */
export type ReferencedAuthor = 'own' | readonly string[]

/** Somebody edited or deleted a message on WhatsApp. */
export interface IncomingChange extends Arrived {
  /** WhatsApp did not name the LID with the change. It may be unknown when WhatsApp delivers the change again. */
  isLidLookedUp?: true
  change: 'edit' | 'delete'
  /** WhatsApp's ID of the message that it changes. */
  target: string
  /** Whether the change names the instance as the author of its target. */
  ofOwn: boolean
  /** True if it deletes somebody else's message in a group, which only admins may do. False: the sender is not an admin. */
  byAdmin?: boolean
  /** With `byAdmin`: the author of the message that it deletes. */
  author?: Pick<Arrived, 'from' | 'addressing' | 'lid'>
  /** The new text of an edit; absent if there is none. */
  text?: string
}

export function isChange(arrived: IncomingMessage | IncomingChange): arrived is IncomingChange {
  return 'change' in arrived
}

/** A message that another one refers to. `messageId`: null if it is unknown here; absent until it was looked up. */
interface Reference {
  whatsappId: string
  messageId?: string | null
}

/** The parts of a message other than its type, text and file (contract §4). */
export interface IncomingDetails {
  /** `from`: the number of the quoted message's sender, or its LID address. */
  quote?: Reference & { from: string | null; text: string | null }
  /** Numbers, or LID addresses. */
  mentions?: string[]
  /** A null emoji removes the reaction. */
  reaction?: Reference & { emoji: string | null }
  /** The advertisement that the sender answers. */
  referral?: { sourceId: string | null; clickId: string | null; headline: string | null; url: string | null }
  location?: { latitude: number; longitude: number; name?: string; address?: string }
  contacts?: { name: string | null; vcard: string }[]
  /** `selectable`: how many options may be chosen; null if any number. */
  poll?: { question: string; options: string[]; selectable: number | null }
  /** It can be opened once. WhatsApp usually withholds its content from linked devices. */
  viewOnce?: true
}

/** A message that a simulated contact writes to a sandbox instance. */
export interface ContactMessage {
  from: string
  text: string
  group?: string | undefined
  name?: string | undefined
}

/** The sender's phone number, digits only; null if unknown, or if it is no valid number, such as `0`, WhatsApp's own account. */
export function phoneOf({ from, addressing }: Pick<IncomingMessage, 'from' | 'addressing'>): string | null {
  return addressing === undefined ? numberIn(from) : null
}

/**
 * The deduplication keys of an incoming message or change: chat, sender and WhatsApp's ID. There is one key for each known
 * address of the sender, `from` first, because the known addresses may change before WhatsApp delivers the message again. Two
 * messages that share a key are the same message. Keys are stored as digests, so their format must never change.
 */
export function incomingKeys({
  id,
  from,
  group,
  chat,
  lid,
  written,
}: Pick<Arrived, 'id' | 'from' | 'group' | 'chat' | 'lid' | 'written'>): [string, ...string[]] {
  if (written)
    return lid === null || lid === chat ? [`written:${chat}:${id}`] : [`written:${chat}:${id}`, `written:${lid}:${id}`]
  const keyOf = (sender: string) => `received:${group ?? sender}:${sender}:${id}`
  const alias = lid?.slice(0, lid.indexOf('@'))
  return alias === undefined || alias === from ? [keyOf(from)] : [keyOf(from), keyOf(alias)]
}
