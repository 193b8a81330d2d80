import { call } from './client.ts'
import type { ContactRow, GroupRow, InboxChat, Page } from './types.ts'

const MAX_LIMIT = 200
/** A chat without messages. */
const NO_MESSAGES = { unreadCount: 0, lastReceivedId: null }

type FoundChat = Pick<InboxChat, 'chat' | 'lid' | 'name' | 'username' | 'unreadCount' | 'lastReceivedId'>

/** Finds a chat that is not among the latest, or that has no messages yet. Null if the chat is unknown. */
export async function findChat(id: string, chat: string, signal: AbortSignal): Promise<FoundChat | null> {
  const chats = await call<Page<InboxChat>>(`/instances/${id}/chats`, { query: { search: chat }, signal })
  const known = chats.data.find(row => row.chat === chat || row.lid === chat)
  if (known) return known
  if (chat.endsWith('@g.us')) {
    const group = await findGroup(id, chat, signal)
    return group && { ...NO_MESSAGES, chat, lid: null, name: group.subject, username: null }
  }
  const contacts = await call<Page<ContactRow>>(`/instances/${id}/contacts`, { query: { search: chat }, signal })
  const contact = contacts.data.find(row => row.chat === chat)
  if (!contact) return null
  const { lid, name, pushName, username } = contact
  return { ...NO_MESSAGES, chat, lid, name: name ?? pushName, username }
}

async function findGroup(id: string, group: string, signal: AbortSignal): Promise<GroupRow | null> {
  for (let cursor: string | undefined; ; ) {
    const query = { limit: MAX_LIMIT, cursor }
    const page = await call<Page<GroupRow>>(`/instances/${id}/groups`, { query, signal })
    const found = page.data.find(row => row.id === group)
    if (found || page.nextCursor === null) return found ?? null
    cursor = page.nextCursor
  }
}
