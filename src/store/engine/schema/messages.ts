import { type Generated, sql } from 'kysely'
import type { Addressing, IncomingType } from '../../../domain/incoming-message.ts'
import type { FailureCode, MessageState } from '../../../domain/message.ts'

export interface MessagesTable {
  seq: Generated<number>
  instance_id: string
  id: string
  /** As the caller wrote it. */
  recipient: string
  text: string
  whatsapp_id: string
  state: MessageState
  created_at: number
  sent_at: number | null
  delivered_at: number | null
  read_at: number | null
  failed_at: number | null
  failure_code: FailureCode | null
  failure_message: string | null
  /** Timestamp of the latest event. */
  last_event_at: number | null
  /** Set together with `content`, by the first preparation. */
  address: string | null
  content: Uint8Array | null
  /** The file that the message contains, or the image of a link preview (`file` is then null). Null for any other text. */
  media_id: Generated<string | null>
  /** How it is shown, as JSON. Null for a text. */
  file: Generated<string | null>
  /** The extras of a message, or a command, as JSON (`MessageExtras`). Null if it has none. */
  extras: Generated<string | null>
  /** The moment of a scheduled message. */
  not_before: Generated<number | null>
  /** When its text was last changed on WhatsApp. */
  edited_at: Generated<number | null>
  /** When it was deleted on WhatsApp for everyone. The text is then erased. */
  deleted_at: Generated<number | null>
  /** The trace context of the call that created it; null if it had none. */
  traceparent: Generated<string | null>
}

export interface IncomingMessagesTable {
  instance_id: string
  id: string
  created_at: number
  /** By WhatsApp's clock. */
  sent_at: number
  type: IncomingType
  /** The group, or the sender. */
  chat: string
  /** Digits of the sender's number, or of the sender's other address if `addressing` is set. */
  sender: string
  addressing: Addressing | null
  lid: string | null
  /** SHA-256 of the message's second key, if it has two. The first one is `incoming_digest` of its event. */
  alias_digest: Uint8Array | null
  /** A JSON string, like the next three columns. */
  whatsapp_id: string
  username: string | null
  name: string | null
  text: string | null
  /** The ID of the file, if it has one. */
  media_id: Generated<string | null>
  /** The message's description of its file, as JSON. */
  file: Generated<string | null>
  /** The other parts of the message, as JSON (`IncomingDetails`). */
  details: Generated<string | null>
  /** As for `messages`. */
  edited_at: Generated<number | null>
  deleted_at: Generated<number | null>
  /** 1 if the owner wrote it on another device: `sender` is the instance's own number, `chat` and `lid` name the other side. */
  written: Generated<number | null>
}

export interface IdempotencyKeysTable {
  instance_id: string
  key: string
  digest: Uint8Array
  message_id: string
  /** On the database's clock. */
  expires_at: number
}

export interface NumbersTable {
  instance_id: string
  number: string
  address: string | null
  expires_at: number
}

/** A literal, not a parameter: SQLite uses a partial index only if the query states the index's condition. */
export const IS_QUEUED = sql<boolean>`messages.state = 'queued'`

/** A scheduled message before its release. The last condition makes SQLite prefer the index of these messages. */
export const IS_SCHEDULED = sql<boolean>`messages.state = 'queued' and messages.not_before is not null
  and messages.seq < 0 and messages.not_before > 0`

export const IS_SETTLED = sql<boolean>`messages.state <> 'queued'`

export const IS_FAILED = sql<boolean>`messages.state = 'failed'`

/** Only prepared messages can be found by their WhatsApp ID. */
export const IS_PREPARED = sql<boolean>`messages.address is not null`
