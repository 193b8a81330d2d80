import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { pageOf } from '../../resources/page.ts'
import { apiKeySchema, apiKeyView } from '../../resources/people/api-key.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'

export function listKeys(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/keys',
    {
      schema: {
        operationId: 'listKeys',
        summary: 'List the API keys of an instance',
        description: "Newest first, at most 50, on one page. The instance's token is not one of them.",
        tags: ['API keys'],
        params: instanceParams,
        response: { 200: pageOf(apiKeySchema, 'All keys, including expired ones.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      const keys = orNotFound(isId(id) ? await store.apiKeys.list(id) : null)
      return { data: keys.map(apiKeyView), nextCursor: null }
    },
  )
}
