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
  /** The message cannot be quoted (for example, it failed or was erased): the text goes out without the quote. */
  dropped?: true
}

/** Supplied by the caller. Nothing is fetched. */
export interface LinkPreview {
  url: string
  title: string
  description?: string
  /** The ID of a picture that was uploaded or received. */
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

/** A reaction, edit, deletion or read mark. It is sent and retried like a message of its chat. */
export type Command = CommandContent & { target: MessageReferenced }

/** What is to be done with which message. `emoji` only for a reaction; null if it is removed. */
export interface CommandSummary {
  kind: CommandKind
  messageId: MessageId
  emoji?: string | null
}

export function summaryOf(command: Command): CommandSummary {
  const { kind, target } = command
  return { kind, messageId: target.messageId, ...(kind === 'reaction' && { emoji: command.emoji }) }
}

/** The parts of a message other than its text and file. A plain text has none. */
export interface MessageExtras {
  quote?: Quote
  mentions?: Mentions
  preview?: LinkPreview
  /** Echoed in every event of the message. */
  metadata?: Record<string, unknown>
  /** If it is set, the row is a command, not a message. */
  command?: Command
}

/** The extras as a caller requested them. */
export interface RequestedExtras extends Pick<MessageExtras, 'mentions' | 'preview' | 'metadata'> {
  /** The ID of the quoted message, in Pombal or in WhatsApp. */
  quote?: string
  command?: CommandContent & { targetId: MessageId }
}

/** A command as the API shows it. */
export interface CommandState extends CommandSummary {
  id: string
  createdAt: number
  doneAt: number | null
  failedAt: number | null
}
