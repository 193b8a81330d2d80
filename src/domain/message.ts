import type { MessageExtras } from './conversation.ts'
import type { MessageId } from './ids.ts'
import type { MediaForm } from './media.ts'

export const MESSAGE_STATES = ['queued', 'sent', 'delivered', 'read', 'failed'] as const
export type MessageState = (typeof MESSAGE_STATES)[number]

/** The states that a message advances through; `failed` is not one of them. */
export type MessageProgress = 'sent' | 'delivered' | 'read'

/** The next state of each state (contract §4). `canFail` decides about `failed`. */
const NEXT: Record<MessageState, MessageProgress | null> = {
  queued: 'sent',
  sent: 'delivered',
  delivered: 'read',
  read: null,
  failed: null,
}

/**
 * The transitions that take a message from `state` to `reached`, in order and with gaps filled: a `read` for a `sent`
 * message is `delivered`, then `read`. Empty for late and repeated receipts, and after `failed`.
 */
export function movesTo(state: MessageState, reached: MessageProgress): readonly MessageProgress[] {
  const moves: MessageProgress[] = []
  for (let at = state; at !== reached; at = moves.at(-1)!) {
    const progress = NEXT[at]
    if (progress === null) return []
    moves.push(progress)
  }
  return moves
}

/** Why a message failed, in `message.failed` and `GET /v1/messages/{id}` (contract §3). */
export const FAILURE_CODES = [
  'recipient_not_on_whatsapp',
  'not_a_group_member',
  'rejected_by_whatsapp',
  'media_unavailable',
  'media_too_large',
  'media_unsupported',
  'message_failed',
  'edit_window_closed',
  'cancelled',
  'instance_logged_out',
  'instance_deleted',
  'expired',
  'unconfirmed',
] as const
export type FailureCode = (typeof FAILURE_CODES)[number]

/** The failures that WhatsApp reports. It may report them after it has acknowledged the message. */
const REFUSED_BY_WHATSAPP: readonly FailureCode[] = ['not_a_group_member', 'rejected_by_whatsapp']

export function canFail(state: MessageState, code: FailureCode): boolean {
  return state === 'queued' || (state === 'sent' && REFUSED_BY_WHATSAPP.includes(code))
}

export interface MessageFailure {
  code: FailureCode
  /** A sentence for people. */
  message: string
}

const FAILURE_SENTENCES: Record<FailureCode, string> = {
  recipient_not_on_whatsapp: 'The number is not on WhatsApp.',
  not_a_group_member: 'The instance is not a member of the group.',
  rejected_by_whatsapp: 'WhatsApp refused the message.',
  media_unavailable: 'The file of the message is missing or damaged, or could not be fetched from its URL.',
  media_too_large: 'The file is larger than WhatsApp or this service allows.',
  media_unsupported: 'WhatsApp does not show a file of this type in this form.',
  message_failed: 'The message that the command concerns failed or was erased.',
  edit_window_closed: 'The message was sent more than 15 minutes ago, so WhatsApp does not let it be edited.',
  cancelled: 'The message was deleted before it was handed to WhatsApp.',
  instance_logged_out: 'The number was unlinked before the message was handed to WhatsApp.',
  instance_deleted: 'The instance was deleted before the message was handed to WhatsApp.',
  expired: 'The message became too old before it was handed to WhatsApp.',
  unconfirmed: 'The message may have been handed to WhatsApp, which did not acknowledge it: it may have arrived.',
}

/** @param whatsappCode WhatsApp's own refusal code, added to the sentence */
export function messageFailure(code: FailureCode, whatsappCode?: number): MessageFailure {
  const sentence = FAILURE_SENTENCES[code]
  return {
    code,
    message: whatsappCode === undefined ? sentence : `${sentence.slice(0, -1)} (code ${whatsappCode}).`,
  }
}

/** The file was fetched from its URL, but there was no space to store it. */
export const NO_SPACE_FOR_FILE: MessageFailure = {
  code: 'media_unavailable',
  message:
    "The file was not stored: with it, the instance's files would exceed MEDIA_QUOTA_MB. Erase files, or raise the quota.",
}

/** The chat waited for the file as long as it may. */
export const NOT_FETCHED_IN_TIME: MessageFailure = {
  code: 'media_unavailable',
  message:
    "The file was not fetched from its URL within 60 s from the message's turn. To send one file to many recipients, upload it once and send its ID.",
}

/** A recorded step of one message, for the metrics. */
export type MessageStep =
  | { step: 'accepted' | 'received' | Exclude<MessageState, 'queued' | 'failed'> }
  | { step: 'failed'; code: FailureCode }

export const WAIT_REASONS = ['connection', 'order', 'schedule', 'pace', 'restriction', 'media'] as const

/** What a queued message waits for. `notBefore`: the earliest time at which it is sent, if that is known. */
export interface Waiting {
  waitingFor: (typeof WAIT_REASONS)[number]
  notBefore: number | null
}

/** A file that a message contains. */
export interface MessageFile {
  mediaId: string
  /** Null: the file's type decides, once the file is fetched from its URL. */
  form: MediaForm | null
  filename: string | null
  /** The file is still to be fetched from its URL, or could not be fetched. */
  fetch?: 'pending' | 'failed'
  /** The caller asked for a voice note, but WhatsApp would not play the file as one. */
  notVoice?: true
}

/**
 * The content of a message that a caller sends: a text, or a file whose caption is `text`. For a new field, follow CONTRIBUTING.md:
 * a place that is forgotten sends an empty text.
 */
export type MessageContent = { text: string; file?: MessageFile | undefined; extras?: MessageExtras | undefined }

/**
 * Why a queued message is not sent any more; null while it may be sent.
 * @param oldest messages accepted at this moment or before have expired
 */
export function expiryFailure(
  { createdAt, isPrepared }: { createdAt: number; isPrepared: boolean },
  oldest: number,
): MessageFailure | null {
  return createdAt <= oldest ? messageFailure(isPrepared ? 'unconfirmed' : 'expired') : null
}

/**
 * A sent message. `notBefore`: when a scheduled message is due. Times are milliseconds since 1970, null for states that
 * the message has not reached.
 */
export type Message = MessageContent & {
  id: MessageId
  whatsappId: string
  state: MessageState
  /** The recipient as the caller wrote it. */
  to: string
  createdAt: number
  notBefore?: number
  sentAt: number | null
  deliveredAt: number | null
  readAt: number | null
  failedAt: number | null
  /** When its text was last changed, and when it was deleted for everyone. A deletion erases the text. */
  editedAt: number | null
  deletedAt: number | null
  failure: MessageFailure | null
}
