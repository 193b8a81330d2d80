import type { InstanceId, MessageId } from './ids.ts'
import { type IncomingMessage, phoneOf } from './incoming-message.ts'
import type { MessageFailure, MessageProgress } from './message.ts'

/** The kinds of one message's events are in the order in which they happen. */
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

/** The maximum text in an event, in UTF-16 units. Longer text is cut. */
export const MAX_EVENT_TEXT_UNITS = 65_536

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
