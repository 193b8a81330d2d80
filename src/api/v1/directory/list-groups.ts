import type { Api, ApiContext } from '../../context.ts'
import { groupsQuery, readGroups } from '../../list-directory.ts'
import { groupSchema } from '../../resources/conversation/directory.ts'
import { pageOf } from '../../resources/page.ts'

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
