import { call } from './client.ts'
import type { ContactRow, GroupRow, InboxChat, Page } from './types.ts'

const MAX_LIMIT = 200

/** Finds the names of a chat that is not among the latest, or that has no messages yet. Null if the chat is unknown. */
export async function findChat(
  id: string,
  chat: string,
  signal: AbortSignal,
): Promise<Pick<InboxChat, 'chat' | 'lid' | 'name' | 'username'> | null> {
  const chats = await call<Page<InboxChat>>(`/instances/${id}/chats`, { query: { search: chat }, signal })
  const known = chats.data.find(row => row.chat === chat || row.lid === chat)
  if (known) return known
  if (chat.endsWith('@g.us')) {
    const groups = await call<Page<GroupRow>>(`/instances/${id}/groups`, { query: { limit: MAX_LIMIT }, signal })
    const group = groups.data.find(row => row.id === chat)
    return group ? { chat, lid: null, name: group.subject, username: null } : null
  }
  const contacts = await call<Page<ContactRow>>(`/instances/${id}/contacts`, { query: { search: chat }, signal })
  const contact = contacts.data.find(row => row.chat === chat)
  return contact ? { chat, lid: contact.lid, name: contact.name ?? contact.pushName, username: contact.username } : null
}
