import { type Static, Type } from 'typebox'
import { GROUP_ROLES } from '../../../domain/recipients/group.ts'
import type { DescribedGroup, DirectoryContact, ListedGroup } from '../../../store/directory/directory.ts'
import { senderProperties } from '../incoming-message.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from '../schema-kit.ts'

const MAX_SEARCH_LENGTH = 64

export function searchQuery(description: string) {
  return Type.Optional(Type.String({ minLength: 1, maxLength: MAX_SEARCH_LENGTH, description }))
}

export const groupIdSchema = Type.String({
  maxLength: 64,
  description: 'The group, as `to` of a message.',
  examples: ['120363041234567890@g.us'],
})

const groupProperties = {
  id: groupIdSchema,
  subject: Type.String({ description: 'The name of the group.' }),
  memberCount: Type.Integer({ minimum: 0 }),
  canSend: Type.Boolean({ description: 'Whether the number may write to the group.' }),
  isAdmin: Type.Boolean({ description: 'Whether the number is an admin of the group.' }),
  asOf: moment('When WhatsApp last reported the group or a change of it.'),
}

export const groupSchema = Type.Object(groupProperties, {
  title: 'Group',
  description: 'A group that the linked number is a member of.',
})

export const describedGroupSchema = Type.Object(
  {
    ...groupProperties,
    description: nullable(Type.String({ description: 'The description of the group; null if it has none.' })),
    members: Type.Array(
      Type.Object({
        phone: nullable(Type.String({ description: 'The number; null if WhatsApp hides it.' })),
        lid: nullable({ ...senderProperties.lid, description: 'The LID address; null if unknown.' }),
        name: nullable(
          Type.String({ description: "The name in the phone's address book, else the push name; null if unknown." }),
        ),
        role: oneOf(GROUP_ROLES, { description: '`owner`: the admin who created the group.' }),
      }),
    ),
  },
  { title: 'DescribedGroup', description: 'A group with its members.' },
)

export const contactSchema = Type.Object(
  {
    chat: Type.String({
      description: 'The person, as `to` of a message: a number if known, else a LID address.',
      examples: ['5511987654321'],
    }),
    phone: nullable(Type.String({ description: 'The number; null if it is unknown.' })),
    lid: nullable({ ...senderProperties.lid, description: 'The LID address; null if unknown.' }),
    username: nullable(Type.String({ description: 'The user name; null if unknown.' })),
    name: nullable(Type.String({ description: "The name in the phone's address book; null if unknown." })),
    pushName: nullable(Type.String({ description: 'The name that the person has chosen; null if unknown.' })),
    lastMessageAt: nullable(
      moment(
        'The time of the latest message, which may be from before the number was linked. It may be up to a minute earlier ' +
          'than the message. Null if unknown.',
      ),
    ),
  },
  {
    title: 'Contact',
    description: "A person who is in the phone's address book, or who wrote to the instance or in its groups.",
  },
)

export const erasedContactSchema = Type.Object(
  {
    messages: Type.Integer({
      description:
        'Erased messages and commands, sent and received, including those in groups. Replies and read marks that ' +
        'stay without the person are not counted.',
    }),
    events: Type.Integer({
      description:
        'Events whose content was erased (`data` has only `id` and `erased`), and events about the members of groups ' +
        'that no longer name the person.',
    }),
    files: Type.Integer({ description: 'Erased files that the contact had sent.' }),
    kept: Type.Integer({
      description:
        'Messages and events that were kept, because they are queued, were sent less than 25 hours ago, have ' +
        'events that are still being posted, have a file that a queued message forwards, or arrived or were sent during ' +
        'the call. If this is not 0, repeat the call a day later.',
    }),
  },
  { title: 'ErasedContact' },
)

export type ErasedContactView = Static<typeof erasedContactSchema>
export type GroupView = Static<typeof groupSchema>
export type ContactView = Static<typeof contactSchema>

export function groupView(group: ListedGroup): GroupView {
  const { id, subject, memberCount, canSend, isAdmin, asOf } = group
  return { id, subject, memberCount, canSend, isAdmin, asOf: toIso(asOf) }
}

export function describedGroupView(group: DescribedGroup): Static<typeof describedGroupSchema> {
  const members = group.members.map(({ phone, lid, name, role }) => ({ phone, lid, name, role }))
  return { ...groupView(group), description: group.description, members }
}

export function contactView({ lastMessageAt, ...contact }: DirectoryContact): ContactView {
  return { ...contact, lastMessageAt: toIsoOrNull(lastMessageAt) }
}
