import { Type } from 'typebox'
import { parseRecipient } from '../../../domain/recipients/recipient.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { contactsQuery, groupsQuery, readContacts, readGroups } from '../../list-directory.ts'
import {
  contactSchema,
  describedGroupSchema,
  describedGroupView,
  groupIdSchema,
  groupSchema,
} from '../../resources/conversation/directory.ts'
import { pageOf } from '../../resources/page.ts'
import { dataOf } from '../../resources/schema-kit.ts'

export function listGroups(api: Api, { store }: ApiContext): void {
  api.get(
    '/groups',
    {
      schema: {
        operationId: 'listGroups',
        summary: 'List groups',
        description:
          'The groups of the linked number, by name. They are read from the database: WhatsApp is not asked.',
        tags: ['Directory'],
        querystring: groupsQuery,
        response: { 200: pageOf(groupSchema, 'One page of groups.') },
      },
      config: { scope: 'read', refusals: ['invalid_request'] },
    },
    request => readGroups(store.directory, request.instanceId, request.query),
  )
}

export function getGroup(api: Api, { store }: ApiContext): void {
  api.get(
    '/groups/:id',
    {
      schema: {
        operationId: 'getGroup',
        summary: 'Read a group with its members',
        description: 'Only groups that the linked number is a member of are found.',
        tags: ['Directory'],
        params: Type.Object({ id: groupIdSchema }),
        response: { 200: dataOf(describedGroupSchema, 'The group.') },
      },
      config: { scope: 'read', refusals: ['group_not_found'] },
    },
    async request => {
      const { id } = request.params
      const isGroup = parseRecipient(id)?.kind === 'group'
      const group = isGroup ? await store.directory.findGroup(request.instanceId, id) : null
      if (!group) throw new Refusal('group_not_found')
      return { data: describedGroupView(group) }
    },
  )
}

export function listContacts(api: Api, { store }: ApiContext): void {
  api.get(
    '/contacts',
    {
      schema: {
        operationId: 'listContacts',
        summary: 'List contacts',
        description:
          "The people in the phone's address book, and everybody who wrote to the instance or in its groups, by " +
          'name. People without a name come last.',
        tags: ['Directory'],
        querystring: contactsQuery,
        response: { 200: pageOf(contactSchema, 'One page of contacts.') },
      },
      config: { scope: 'read', refusals: ['invalid_request'] },
    },
    request => readContacts(store.directory, request.instanceId, request.query),
  )
}
