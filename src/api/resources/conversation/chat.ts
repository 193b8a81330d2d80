import { type Static, Type } from 'typebox'
import type { Chat } from '../../../store/conversations/conversations.ts'
import { senderProperties } from '../incoming-message.ts'
import { pageQuery } from '../page.ts'
import { moment, nullable, toIso } from '../schema-kit.ts'
import { searchQuery } from './directory.ts'

/** Both APIs list chats in the same way. */
export const chatsQuery = Type.Object({
  ...pageQuery,
  search: searchQuery('Only chats whose number or name contains this, without regard to case and accents.'),
})

export const chatSchema = Type.Object(
  {
    chat: Type.String({
      description: 'The person or group, as `to` of a message: a number if known, else a LID address; or a group.',
      examples: ['5511987654321'],
    }),
    phone: nullable(Type.String({ description: 'The number; null for a group, or if it is unknown.' })),
    lid: nullable({ ...senderProperties.lid, description: 'The LID address; null for a group, or if unknown.' }),
    username: nullable(Type.String({ description: 'The user name; null if unknown.' })),
    name: nullable(
      Type.String({
        description:
          "A group's subject; a person's name in the phone's address book, else the push name. Null if unknown.",
      }),
    ),
    lastMessageAt: moment(
      'The time of the latest message, or up to a minute earlier. For a chat that is known only from the history of the ' +
        'phone, it is the time that the phone reports.',
    ),
  },
  { title: 'Chat', description: 'A person or group that messages were exchanged with.' },
)

export function chatView({ lastMessageAt, ...chat }: Chat): Static<typeof chatSchema> {
  return { ...chat, lastMessageAt: toIso(lastMessageAt) }
}
