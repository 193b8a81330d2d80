import type { Api, ApiContext } from '../../context.ts'
import { contactsQuery, groupsQuery, readContacts, readGroups } from '../../list-directory.ts'
import { contactSchema, groupSchema } from '../../resources/conversation/directory.ts'
import { pageOf } from '../../resources/page.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

export function listInstanceGroups(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/groups',
    {
      schema: {
        operationId: 'listInstanceGroups',
        summary: 'List groups of an instance',
        description: 'The groups of the linked number, by name.',
        tags: ['Message log'],
        params: instanceParams,
        querystring: groupsQuery,
        response: { 200: pageOf(groupSchema, 'One page of groups.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      return readGroups(store.directory, id, request.query)
    },
  )
}

export function listInstanceContacts(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/contacts',
    {
      schema: {
        operationId: 'listInstanceContacts',
        summary: 'List contacts of an instance',
        description: 'The people whom the linked phone knows, and those who have written, by name.',
        tags: ['Message log'],
        params: instanceParams,
        querystring: contactsQuery,
        response: { 200: pageOf(contactSchema, 'One page of contacts.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      return readContacts(store.directory, id, request.query)
    },
  )
}
