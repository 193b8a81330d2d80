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

/** A message that somebody wrote to the instance (decisions §4). */
export interface IncomingMessage {
  /** WhatsApp's id. */
  id: string
  /** The sender's number, digits only; the LID's digits where the number cannot be known. */
  from: string
  /** Set only where `from` is not a phone number. */
  addressing?: 'lid'
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

/** What tells two incoming messages of an instance apart, whatever is redelivered: chat, sender and WhatsApp's id. */
export function incomingKey(message: IncomingMessage): string {
  return `received:${message.group ?? message.from}:${message.from}:${message.id}`
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

export function incomingBody(instanceId: InstanceId, message: IncomingMessage): string {
  const { sentAt, ...data } = message
  return body('message.received', instanceId, sentAt, data)
}

export function testBody(instanceId: InstanceId, at: number): string {
  return body(TEST_EVENT, instanceId, at, {})
}
