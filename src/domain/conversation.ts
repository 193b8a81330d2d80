import type { MessageId } from './ids.ts'

/** WhatsApp lets a text be edited for this long after it was sent. */
export const EDIT_WINDOW_MS = 15 * 60_000

/** A stored message that a text answers or a command concerns. */
export interface MessageReferenced {
  messageId: MessageId
  whatsappId: string
  /** The address of its sender on WhatsApp; null if the instance sent it. */
  author: string | null
}

export interface Quote extends MessageReferenced {
  /** The quoted message failed or was erased, so the text goes out without the quote. */
  dropped?: true
}

/** Supplied by the caller. Nothing is fetched. */
export interface LinkPreview {
  url: string
  title: string
  description?: string
  /** A picture that was uploaded. */
  image?: string
}

/** Numbers and LID addresses, or everybody in a group. */
export type Mentions = readonly string[] | 'all'

export const COMMAND_KINDS = ['reaction', 'edit', 'delete', 'read'] as const
export type CommandKind = (typeof COMMAND_KINDS)[number]

/** `emoji` null removes the reaction. */
type CommandContent =
  | { kind: 'reaction'; emoji: string | null }
  | { kind: 'edit'; text: string }
  | { kind: 'delete' }
  | { kind: 'read' }

/** An action on WhatsApp other than showing a message. It is sent, retried and reported like a message of its chat. */
export type Command = CommandContent & { target: MessageReferenced }

/** The parts of a message other than its text and file. A plain text has none. */
export interface MessageExtras {
  quote?: Quote
  mentions?: Mentions
  preview?: LinkPreview
  /** Echoed in every event of the message. */
  metadata?: Record<string, unknown>
  /** Then it is a command, not a message. */
  command?: Command
}

/** The same as a caller wrote it. */
export interface RequestedExtras extends Pick<MessageExtras, 'mentions' | 'preview' | 'metadata'> {
  /** The ID of a message, or WhatsApp's. */
  quote?: string
  command?: CommandContent & { targetId: MessageId }
}

/** A command as the API shows it. */
export interface CommandState {
  id: string
  kind: CommandKind
  messageId: MessageId
  createdAt: number
  doneAt: number | null
  failedAt: number | null
}
