import type { InstanceId, MessageId } from './ids.ts'
import type { MessageFailure, MessageProgress } from './message.ts'

export const EVENT_KINDS = [
  'message.received',
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
] as const
export type EventKind = (typeof EVENT_KINDS)[number]

/** Posted on request to test a webhook. It is not stored. */
export const TEST_EVENT = 'webhook.test'

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

/** A message to the instance (contract §4). */
export interface IncomingMessage {
  id: string
  /** The sender's number, digits only. If it is unknown, the digits of its other address. */
  from: string
  /** Set only if `from` is not a phone number. */
  addressing?: Addressing
  /** The group, or the sender: its number if known, else its LID address. */
  chat: string
  /** The sender's LID address, `digits@lid`; null if unknown. */
  lid: string | null
  /** The sender's user name; null if unknown. */
  username: string | null
  type: IncomingType
  /** The text, the caption or the reaction; absent if there is none. */
  text?: string
  /** The group's JID; absent outside groups. */
  group?: string
  /** The push name; absent if unknown. */
  name?: string
  /** WhatsApp's time, milliseconds since 1970. */
  sentAt: number
}

/** What a simulated contact writes to a sandbox instance. */
export interface ContactMessage {
  from: string
  text: string
  group?: string | undefined
  name?: string | undefined
}

/** The maximum text in an event, in UTF-16 units. Longer text is cut. */
export const MAX_EVENT_TEXT_UNITS = 65_536

/** The sender's phone number, digits only; null if unknown. */
export function phoneOf({ from, addressing }: Pick<IncomingMessage, 'from' | 'addressing'>): string | null {
  return addressing === undefined ? from : null
}

/**
 * The deduplication keys of an incoming message: chat, sender and WhatsApp's ID. There is one key for each known address of
 * the sender, `from` first, because the known addresses may change before WhatsApp delivers the message again. Two messages
 * that share a key are the same message. Keys are stored as digests, so their format must never change.
 */
export function incomingKeys({ id, from, group, lid }: IncomingMessage): [string, ...string[]] {
  const keyOf = (sender: string) => `received:${group ?? sender}:${sender}:${id}`
  const alias = lid?.slice(0, lid.indexOf('@'))
  return alias === undefined || alias === from ? [keyOf(from)] : [keyOf(from), keyOf(alias)]
}

interface Subject {
  instanceId: InstanceId
  messageId: MessageId
  to: string
}

function body(event: EventKind | typeof TEST_EVENT, instanceId: InstanceId, at: number, data: object): string {
  return JSON.stringify({ event, instanceId, timestamp: new Date(at).toISOString(), data })
}

/** The body of the event for a state change. It is created once, and every attempt posts the same bytes. */
export function progressBody(subject: Subject, reached: MessageProgress, at: number): string {
  const { instanceId, messageId: id, to } = subject
  return body(`message.${reached}`, instanceId, at, { id, to, status: reached })
}

export function failureBody(subject: Subject, error: MessageFailure, at: number): string {
  const { instanceId, messageId: id, to } = subject
  return body('message.failed', instanceId, at, { id, to, status: 'failed', error })
}

/** @param messageId the ID of the stored message */
export function incomingBody(instanceId: InstanceId, messageId: MessageId, message: IncomingMessage): string {
  const { sentAt, id, from, addressing, type, text, group, name, chat, lid, username } = message
  const shown = text?.slice(0, endOfText(text))
  const isCut = shown !== undefined && shown !== text
  return body('message.received', instanceId, sentAt, {
    id,
    from,
    ...(addressing && { addressing }),
    type,
    ...(shown !== undefined && { text: shown }),
    ...(isCut && { truncated: true }),
    ...(group && { group }),
    ...(name && { name }),
    messageId,
    chat,
    phone: phoneOf(message),
    lid,
    username,
  })
}

/** The length at which an event's text is cut, never inside a surrogate pair. */
function endOfText(text: string): number {
  const end = MAX_EVENT_TEXT_UNITS
  return (text.codePointAt(end - 1) ?? 0) > 0xffff ? end - 1 : end
}

/** The other party in an event's body: the recipient, the group or the sender. */
export function otherSideOf(eventBody: string): string {
  const { data } = JSON.parse(eventBody) as { data: { to?: string; from?: string; group?: string } }
  return data.to ?? data.group ?? data.from ?? ''
}

export function testBody(instanceId: InstanceId, at: number): string {
  return body(TEST_EVENT, instanceId, at, {})
}
