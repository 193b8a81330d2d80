import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { checkFilterText } from '../../input.ts'
import { inboxChatSchema, inboxChatView } from '../../resources/conversation/inbox.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const querySchema = Type.Object({
  ...pageQuery,
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Only chats whose number or name contains this, without regard to case and accents.',
    }),
  ),
})

export function listInstanceChats(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/chats',
    {
      schema: {
        operationId: 'listInstanceChats',
        summary: 'List the chats of an instance with their last messages',
        description:
          'People and groups that messages were exchanged with since the number was linked, latest first. Chats within a ' +
          'minute of each other may be on the wrong one of two pages.',
        tags: ['Conversations'],
        params: instanceParams,
        querystring: querySchema,
        response: { 200: pageOf(inboxChatSchema, 'One page of chats.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { search } = request.query
      if (search !== undefined) checkFilterText('search', search)
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.conversations.listInbox(id, pageRequest(request.query), search)
      return { data: page.data.map(inboxChatView), nextCursor: page.nextCursor }
    },
  )
}
