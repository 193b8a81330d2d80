import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { checkFilterText } from '../../input.ts'
import { chatSchema, chatView } from '../../resources/conversation/chat.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'

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

export function listChats(api: Api, { store }: ApiContext): void {
  api.get(
    '/chats',
    {
      schema: {
        operationId: 'listChats',
        summary: 'List chats',
        description: 'People and groups that messages were exchanged with since the number was linked, latest first.',
        tags: ['Messages'],
        querystring: querySchema,
        response: { 200: pageOf(chatSchema, 'One page of chats.') },
      },
      config: { scope: 'read', refusals: ['invalid_request'] },
    },
    async request => {
      const { search } = request.query
      if (search !== undefined) checkFilterText('search', search)
      const page = await store.conversations.listChats(request.instanceId, pageRequest(request.query), search)
      return { data: page.data.map(chatView), nextCursor: page.nextCursor }
    },
  )
}
