import type { Command, CommandState } from '../../domain/conversation.ts'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { Message, MessageFailure, MessageState } from '../../domain/message.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { StoredIncoming } from '../messages/messages.ts'

/** A message in either direction. `written`: the owner wrote it on another device. */
export type Line = { direction: 'out'; message: Message } | { direction: 'in' | 'written'; message: StoredIncoming }

export interface LineFilter {
  /** A number, a LID or a group. Messages under another address of the same person are included. */
  chat?: string | undefined
  /** `received`: all messages that others wrote. `written`: those that the owner wrote on another device. */
  status?: MessageState | 'received' | 'written' | undefined
  /** `out` includes messages that the owner wrote on another device. */
  direction?: 'in' | 'out' | undefined
  since?: number | undefined
  /** Part of the text, without regard to case and accents. */
  search?: string | undefined
}

/** A command with its state and its content. */
export type StoredCommand = CommandState & { failure: MessageFailure | null; command: Command }

/** What happened in a chat: a message, or a command of the instance. */
export type ChatEntry = Line | { direction: 'command'; command: StoredCommand }

export interface Chat {
  /** Its name as a recipient: a number, a LID or a group. */
  chat: string
  /** The number; null for a group, or if it is unknown. */
  phone: string | null
  /** Null for a group, or if it is unknown. */
  lid: string | null
  username: string | null
  /** A group's subject; a person's name in the phone's address book, else the push name. */
  name: string | null
  /** Accurate to about a minute. */
  lastMessageAt: number
}

export const MAX_UNREAD = 100

/** An inbox shows the beginning of the last text of a chat, in UTF-16 units. */
export const MAX_LAST_TEXT_UNITS = 1_000

/** A chat as an inbox lists it. */
export interface InboxChat extends Chat {
  /**
   * Received messages, except reactions, that are newer than the last message to the chat (failed ones are ignored) and
   * newer than the last message that was marked as read, under any number of the person. At most `MAX_UNREAD`.
   */
  unreadCount: number
  lastReceivedId: MessageId | null
  /** Its text is cut to `MAX_LAST_TEXT_UNITS`. Null if it was erased. Messages that were never prepared are ignored. */
  lastLine: Line | null
}

/**
 * Messages in both directions, and the chats that they belong to. A page contains about 1 MiB of messages, or one
 * larger message. A page may be empty although more follow, if its messages were erased during the call.
 */
export interface Conversations {
  /** Newest first. */
  listLines(instanceId: InstanceId, page: PageRequest, filter?: LineFilter): Promise<Page<Line>>
  /**
   * The IDs of the files of one page of a chat's messages, also images of link previews, latest first. Files that are
   * gone are left out, so a page may be empty.
   */
  listFiles(instanceId: InstanceId, page: PageRequest, chat: string): Promise<Page<string>>
  /** The chats since the account was linked, latest first. @param search part of a number, or of a name */
  listChats(instanceId: InstanceId, page: PageRequest, search?: string): Promise<Page<Chat>>
  /**
   * The same chats, each with its last line. The chats of a page are in the order of their last lines.
   * @param unreadSince messages that were received earlier do not count as unread; default: all count
   */
  listInbox(instanceId: InstanceId, page: PageRequest, search?: string, unreadSince?: number): Promise<Page<InboxChat>>
  /** Messages and commands of one chat, latest first. @param chat a number, a LID or a group */
  listEntries(instanceId: InstanceId, page: PageRequest, chat: string): Promise<Page<ChatEntry>>
  /** Asks the owner to show a typing indicator for this many seconds. It is only a hint: nothing is stored. */
  requestTyping(instanceId: InstanceId, chat: string, seconds: number): void
}
