import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { listedMediaSchema, listedMediaView } from '../../resources/media.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

export function listMedia(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/media',
    {
      schema: {
        operationId: 'listMedia',
        summary: 'List files',
        description: 'The files that were uploaded for the instance or sent to it, newest first.',
        tags: ['Message log'],
        params: instanceParams,
        querystring: Type.Object(pageQuery),
        response: { 200: pageOf(listedMediaSchema, 'One page of files.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.media.list(id, pageRequest(request.query))
      return { data: page.data.map(listedMediaView), nextCursor: page.nextCursor }
    },
  )
}
