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

/** Posted when somebody asks for it, to see whether a webhook answers; it tells of nothing and is kept nowhere. */
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

/** What `from` holds where it is no phone number; `other`: the address of neither a phone nor a LID, such as an assistant. */
export const ADDRESSINGS = ['lid', 'other'] as const
export type Addressing = (typeof ADDRESSINGS)[number]

/** A message that somebody wrote to the instance (contract §4, extensions §1). */
export interface IncomingMessage {
  /** WhatsApp's id. */
  id: string
  /** The sender's number, digits only; the digits of its other address where the number cannot be known. */
  from: string
  /** Set only where `from` is not a phone number. */
  addressing?: Addressing
  /** The group, or the sender: its number where that is known, else its LID address. */
  chat: string
  /** The sender's LID address, `digits@lid`; null where it is not known. */
  lid: string | null
  /** The sender's user name; null where WhatsApp does not say it. */
  username: string | null
  type: IncomingType
  /** The text, the caption, or the reaction; absent where there is none. */
  text?: string
  /** The group's JID when it came in a group. */
  group?: string
  /** The push name, when known. */
  name?: string
  /** WhatsApp's time, milliseconds since 1970. */
  sentAt: number
}

/** Text in the body of an event, in UTF-16 units; more of it is cut off. */
export const MAX_EVENT_TEXT_UNITS = 65_536

/** The sender's phone number, digits only; null where it is not known. */
export function phoneOf({ from, addressing }: Pick<IncomingMessage, 'from' | 'addressing'>): string | null {
  return addressing === undefined ? from : null
}

/**
 * What tells an incoming message of an instance from every other: chat, sender and WhatsApp's id. One key for each known
 * name of the sender, `from` first: which of them are known may change until WhatsApp delivers the message again. Two
 * messages that share a key are one. These keys are stored as digests: their form never changes.
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

/** The exact bytes (as text) that tell of a move; made once, posted at every attempt. */
export function progressBody(subject: Subject, reached: MessageProgress, at: number): string {
  const { instanceId, messageId: id, to } = subject
  return body(`message.${reached}`, instanceId, at, { id, to, status: reached })
}

export function failureBody(subject: Subject, error: MessageFailure, at: number): string {
  const { instanceId, messageId: id, to } = subject
  return body('message.failed', instanceId, at, { id, to, status: 'failed', error })
}

/** @param messageId under which the whole message is stored */
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

/** Where an event's text ends: never between the two units of one character. */
function endOfText(text: string): number {
  const end = MAX_EVENT_TEXT_UNITS
  return isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

/** Whom the body of an event is about: the recipient, the group or the sender. */
export function otherSideOf(eventBody: string): string {
  const { data } = JSON.parse(eventBody) as { data: { to?: string; from?: string; group?: string } }
  return data.to ?? data.group ?? data.from ?? ''
}

export function testBody(instanceId: InstanceId, at: number): string {
  return body(TEST_EVENT, instanceId, at, {})
}
