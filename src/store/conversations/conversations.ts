import type { InstanceId } from '../../domain/ids.ts'
import type { Message, MessageState } from '../../domain/message.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { StoredIncoming } from '../messages/messages.ts'

/** A message in either direction. */
export type Line = { direction: 'out'; message: Message } | { direction: 'in'; message: StoredIncoming }

export interface LineFilter {
  /** A number, a LID or a group. Messages under another name of the same person count too. */
  chat?: string | undefined
  /** `received`: all incoming messages. */
  status?: MessageState | 'received' | undefined
  direction?: 'in' | 'out' | undefined
  since?: number | undefined
}

export interface Chat {
  /** Its name as a recipient: a number, a LID or a group. */
  chat: string
  /** The number; null for a group, or if it is unknown. */
  phone: string | null
  /** Null for a group, or if it is unknown. */
  lid: string | null
  username: string | null
  /** The push name. */
  name: string | null
  /** Give or take a minute. */
  lastMessageAt: number
}

/** Messages in both directions, and the chats that they belong to. */
export interface Conversations {
  /** Newest first. */
  listLines(instanceId: InstanceId, page: PageRequest, filter?: LineFilter): Promise<Page<Line>>
  /** The chats since the account was linked, latest first. @param search part of a number, or of a name */
  listChats(instanceId: InstanceId, page: PageRequest, search?: string): Promise<Page<Chat>>
}
