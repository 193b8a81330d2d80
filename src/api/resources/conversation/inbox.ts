import { type Static, Type } from 'typebox'
import type { Message } from '../../../domain/message.ts'
import { type ChatEntry, type InboxChat, type Line, MAX_UNREAD } from '../../../store/conversations/conversations.ts'
import { deliveredMessageView, incomingMessageSchema, writtenMessageSchema } from '../incoming-message.ts'
import { messageIdSchema, sentMessageSchema, sentMessageView, type Waits } from '../message.ts'
import { nullable, oneOf } from '../schema-kit.ts'
import { chatSchema, chatView } from './chat.ts'
import { commandSchema, commandView } from './command.ts'

/** A message in either direction. */
export const lineSchema = Type.Union([sentMessageSchema, incomingMessageSchema, writtenMessageSchema])

export type LineView = Static<typeof lineSchema>

const chatCommandSchema = Type.Object(
  {
    ...commandSchema.properties,
    direction: oneOf(['command'], { description: 'Always `command`.' }),
    emoji: nullable(Type.String({ description: 'The reaction; null if it is removed, and for other commands.' })),
  },
  { title: 'ChatCommand', description: 'Something that the instance did with a message of the chat.' },
)

export type ChatCommandView = Static<typeof chatCommandSchema>

export const chatEntrySchema = Type.Union([
  sentMessageSchema,
  incomingMessageSchema,
  writtenMessageSchema,
  chatCommandSchema,
])

export type ChatEntryView = Static<typeof chatEntrySchema>

export const inboxChatSchema = Type.Object(
  {
    ...chatSchema.properties,
    unreadCount: Type.Integer({
      maximum: MAX_UNREAD,
      description:
        'Messages received since the last message to the chat, or since the last read mark of the instance if that is ' +
        `later. Reactions do not count, nor do messages older than \`RETENTION_DAYS\`. ${MAX_UNREAD} means ${MAX_UNREAD} or more.`,
    }),
    lastReceivedId: nullable(messageIdSchema),
    lastMessage: nullable(lineSchema),
  },
  { title: 'InboxChat', description: 'A chat with its last message.' },
)

export type InboxChatView = Static<typeof inboxChatSchema>

export function inboxChatView({ unreadCount, lastReceivedId, lastLine, ...chat }: InboxChat): InboxChatView {
  return { ...chatView(chat), unreadCount, lastReceivedId, lastMessage: lastLine && lineView(lastLine) }
}

/** The sent messages among the entries. */
export function messagesIn(entries: readonly ChatEntry[]): Message[] {
  return entries.flatMap(entry => (entry.direction === 'out' ? [entry.message] : []))
}

export function lineView(line: Line, waits?: Waits): LineView {
  return line.direction === 'out' ? sentMessageView(line.message, waits) : deliveredMessageView(line.message)
}

export function chatEntryView(entry: ChatEntry, waits: Waits): ChatEntryView {
  if (entry.direction !== 'command') return lineView(entry, waits)
  return { emoji: null, ...commandView(entry.command), direction: 'command' }
}
