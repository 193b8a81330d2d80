import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { checkFilterText } from '../../input.ts'
import { lineSchema, lineView } from '../../resources/conversation/inbox.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const querySchema = Type.Object({
  ...pageQuery,
  search: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Only messages whose text contains this, without regard to case and accents.',
  }),
})

export function searchMessages(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/messages/search',
    {
      schema: {
        operationId: 'searchMessages',
        summary: 'Find messages of both directions by their text',
        description: 'Newest first. Reads all messages, so it may take seconds if few contain the text.',
        tags: ['Conversations'],
        params: instanceParams,
        querystring: querySchema,
        response: { 200: pageOf(lineSchema, 'One page of messages.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { search } = request.query
      checkFilterText('search', search)
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.conversations.listLines(id, pageRequest(request.query), { search })
      return { data: page.data.map(line => lineView(line)), nextCursor: page.nextCursor }
    },
  )
}
