import type { CommandSummary } from '../conversation.ts'
import type { InstanceId, MessageId } from '../ids.ts'
import { type IncomingChange, type IncomingDetails, type IncomingMessage, phoneOf } from '../incoming-message.ts'
import { type FileFacts, RECEIVING_FAILURES, type ReceivingFailure } from '../media.ts'
import type { MessageFailure, MessageProgress } from '../message.ts'
import type { GroupDifference, GroupFacts } from '../recipients/group.ts'
import { numberIn } from '../recipients/recipient.ts'

/** The events that report a change of an instance's connection. */
export const INSTANCE_EVENT_KINDS = [
  'instance.linking',
  'instance.connected',
  'instance.restricted',
  'instance.disconnected',
  'instance.stopped',
  'instance.logged_out',
] as const
export type InstanceEventKind = (typeof INSTANCE_EVENT_KINDS)[number]

/** The events that report whether the file of a received message could be fetched. */
export const MEDIA_EVENT_KINDS = ['media.ready', 'media.failed'] as const
export type MediaEventKind = (typeof MEDIA_EVENT_KINDS)[number]

/** The events that report a change of a group. */
const GROUP_EVENT_KINDS = ['group.joined', 'group.changed', 'group.left'] as const
export type GroupEventKind = (typeof GROUP_EVENT_KINDS)[number]
/** The events that report what happened to a message on WhatsApp after it was sent. A message may have several. */
export const CHANGE_EVENT_KINDS = ['message.edited', 'message.deleted'] as const
export type ChangeEventKind = (typeof CHANGE_EVENT_KINDS)[number]

/** The kinds of one message's events are in the order of their occurrence. */
export const EVENT_KINDS = [
  'message.received',
  'message.written',
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
  ...MEDIA_EVENT_KINDS,
  ...CHANGE_EVENT_KINDS,
  'command.done',
  'command.failed',
  ...INSTANCE_EVENT_KINDS,
  ...GROUP_EVENT_KINDS,
] as const
export type EventKind = (typeof EVENT_KINDS)[number]

/** Posted on request to test a webhook. It is not stored. */
export const TEST_EVENT = 'webhook.test'

/** The maximum text in an event, in UTF-16 units. Longer text is cut. */
export const MAX_EVENT_TEXT_UNITS = 65_536
/** WhatsApp's IDs have at most 32. The sender chooses them. */
const MAX_ID_UNITS = 100

/** The fields of a message that its events repeat. */
export interface Echo {
  metadata?: Record<string, unknown> | undefined
  /** The message went out without its quote. */
  quoted?: false | undefined
}

interface Subject extends Echo {
  instanceId: InstanceId
  messageId: MessageId
  to: string
}

function body(event: EventKind | typeof TEST_EVENT, instanceId: InstanceId | null, at: number, data: object): string {
  return JSON.stringify({ event, instanceId, timestamp: new Date(at).toISOString(), data })
}

/** The body of the event for a state change. It is created once, and every attempt posts the same bytes. */
export function progressBody(subject: Subject, reached: MessageProgress, at: number): string {
  const { instanceId, messageId: id, to } = subject
  return body(`message.${reached}`, instanceId, at, { id, to, status: reached, ...echoOf(subject) })
}

export function failureBody(subject: Subject, error: MessageFailure, at: number): string {
  const { instanceId, messageId: id, to } = subject
  return body('message.failed', instanceId, at, { id, to, status: 'failed', error, ...echoOf(subject) })
}

function echoOf({ metadata, quoted }: Echo): Echo {
  return { ...(metadata && { metadata }), ...(quoted === false && { quoted }) }
}

/** `command.done`, or `command.failed` if there is a failure. */
export function commandBody(
  { instanceId, messageId: id, metadata }: Omit<Subject, 'to'>,
  { kind, ...target }: CommandSummary,
  error: MessageFailure | null,
  at: number,
): string {
  const status = error === null ? 'done' : 'failed'
  const data = { id, command: kind, ...target, status, ...(error && { error }) }
  return body(`command.${status}`, instanceId, at, { ...data, ...echoOf({ metadata }) })
}

/** @param group the group after the event, or before it if the account has left it */
export function groupBody(
  kind: GroupEventKind,
  instanceId: InstanceId,
  group: { id: string } & GroupFacts,
  difference: GroupDifference | null,
  at: number,
): string {
  const { id, subject, memberCount, canSend, isAdmin } = group
  if (kind === 'group.left') return body(kind, instanceId, at, { group: id, subject })
  const facts = { group: id, subject, memberCount, canSend, isAdmin }
  return body(kind, instanceId, at, { ...facts, ...(difference && showDifference(difference)) })
}

function showDifference({ changed, ...members }: GroupDifference) {
  const lists = Object.entries(members).filter(([, list]) => list.length > 0)
  const named = lists.map(([name, list]) => [name, list.map(({ phone, lid }) => ({ phone, lid }))])
  return { changed, ...Object.fromEntries(named) }
}

/** The `data` of an event about a connection. */
interface ConnectionReport {
  /** A code; null only in rows from before the codes existed. */
  cause: string | null
  /** A sentence for people, with the remedy. */
  reason: string
  /** The number that is linked, or was until now. */
  phone: string | null
}

export function connectionBody(
  kind: InstanceEventKind,
  instanceId: InstanceId,
  { cause, reason, phone }: ConnectionReport,
  at: number,
): string {
  return body(kind, instanceId, at, { cause, reason, phone })
}

/** The file of a received message, as events show it. */
export interface EventMedia {
  id: string
  facts: FileFacts
  /** Why the file will not be available; null if it is available or is still being fetched. */
  failure: ReceivingFailure | null
}

function showMedia({ id, facts, failure }: EventMedia) {
  const { mimetype, size, sha256, filename, seconds, width, height } = facts
  return {
    id,
    mimetype,
    size,
    sha256: Buffer.from(sha256).toString('hex'),
    ...(filename !== null && { filename }),
    ...(seconds !== null && { seconds }),
    ...(width !== null && { width }),
    ...(height !== null && { height }),
    ...(failure !== null && { error: { code: failure, message: RECEIVING_FAILURES[failure] } }),
  }
}

/** `media.ready`, or `media.failed` if there is a failure. @param message `id` is WhatsApp's */
export function mediaBody(
  instanceId: InstanceId,
  { messageId, id, chat }: { messageId: MessageId; id: string; chat: string },
  media: EventMedia,
  at: number,
): string {
  const kind: MediaEventKind = media.failure === null ? 'media.ready' : 'media.failed'
  return body(kind, instanceId, at, { id, messageId, chat, media: showMedia(media) })
}

/**
 * `message.received`, or `message.written` if the owner wrote it on another device.
 * @param messageId the ID of the stored message @param media its file, if it has one
 */
export function incomingBody(
  instanceId: InstanceId,
  messageId: MessageId,
  message: IncomingMessage,
  media: EventMedia | null = null,
): string {
  const { written, sentAt, id, from, addressing, type, group, name, chat, lid, username, details } = message
  const who = written ? { to: chat } : { from, ...(addressing && { addressing }) }
  return body(written ? 'message.written' : 'message.received', instanceId, sentAt, {
    id: id.slice(0, MAX_ID_UNITS),
    ...who,
    type,
    ...cutText(message.text),
    ...(group && { group }),
    ...(name && { name }),
    messageId,
    chat,
    phone: written ? numberIn(chat) : phoneOf(message),
    lid,
    username,
    ...(media !== null && { media: showMedia(media) }),
    ...(details && showDetails(details)),
  })
}

/** The text of an event, cut to `MAX_EVENT_TEXT_UNITS`. */
function cutText(text: string | undefined) {
  const shown = text?.slice(0, endOfText(text))
  return { ...(shown !== undefined && { text: shown }), ...(shown !== text && { truncated: true }) }
}

/** The message that was edited or deleted. `messageId` is null if Pombal does not know the message. */
export interface Changed {
  messageId: MessageId | null
  direction: 'in' | 'out'
  /** Of a message that was sent through the API. */
  metadata?: Echo['metadata']
}

/** `message.edited` or `message.deleted`. */
export function changeBody(instanceId: InstanceId, changed: Changed, change: IncomingChange): string {
  const { messageId, direction, metadata } = changed
  const { sentAt, target: id, from, addressing, chat, group, lid } = change
  const by = addressing === undefined ? from : lid
  const kind: ChangeEventKind = change.change === 'edit' ? 'message.edited' : 'message.deleted'
  const data = {
    id,
    messageId,
    chat,
    direction,
    by,
    ...(group && { group }),
    ...cutText(change.text),
    ...echoOf({ metadata }),
  }
  return body(kind, instanceId, sentAt, data)
}

/**
 * A quote or reaction names its message by both IDs, WhatsApp's and Pombal's; `messageId` is null if Pombal does not know the message.
 */
export function showDetails({ quote, reaction, ...details }: IncomingDetails) {
  return {
    ...(quote && { quote: { ...quote, messageId: quote.messageId ?? null } }),
    ...(reaction && { reaction: { ...reaction, messageId: reaction.messageId ?? null } }),
    ...details,
  }
}

/** The length at which an event's text is cut, never inside a surrogate pair. */
function endOfText(text: string): number {
  const end = MAX_EVENT_TEXT_UNITS
  return (text.codePointAt(end - 1) ?? 0) > 0xffff ? end - 1 : end
}

/** The other party in an event's body: the recipient, the group or the sender. */
export function otherSideOf(eventBody: string): string {
  const { data } = JSON.parse(eventBody) as { data: { to?: string; from?: string; group?: string; chat?: string } }
  return data.to ?? data.group ?? data.from ?? data.chat ?? ''
}

/** @param instanceId null: the endpoint belongs to no instance */
export function testBody(instanceId: InstanceId | null, at: number): string {
  return body(TEST_EVENT, instanceId, at, {})
}
