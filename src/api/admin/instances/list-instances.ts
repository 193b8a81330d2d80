import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { checkFilterText } from '../../input.ts'
import { instanceSchema, instanceView } from '../../resources/instance.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'

const MAX_SEARCH_LENGTH = 100

const querySchema = Type.Object({
  ...pageQuery,
  search: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_SEARCH_LENGTH, description: 'Part of a name, ID or number.' }),
  ),
})

export function listInstances(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances',
    {
      schema: {
        operationId: 'listInstances',
        summary: 'List instances',
        description: 'Newest first.',
        tags: ['Instances'],
        querystring: querySchema,
        response: { 200: pageOf(instanceSchema, 'One page of instances.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      const { search } = request.query
      if (search !== undefined) checkFilterText('search', search)
      const page = await store.instances.list(pageRequest(request.query), { search })
      return { data: page.data.map(instanceView), nextCursor: page.nextCursor }
    },
  )
}
