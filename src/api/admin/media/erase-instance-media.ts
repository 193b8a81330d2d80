import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { getStorageOrRefuse, mediaParams } from './media-params.ts'

export function eraseInstanceMedia(api: Api, context: ApiContext): void {
  api.delete(
    '/instances/:id/media/:mediaId',
    {
      schema: {
        operationId: 'eraseInstanceMedia',
        summary: 'Erase a file of an instance',
        tags: ['Message log'],
        params: mediaParams,
        response: { 204: Type.Null({ description: 'Erased.' }) },
      },
      config: {
        refusals: ['instance_not_found', 'media_not_found', 'media_gone', 'media_in_use', 'media_not_configured'],
      },
    },
    async (request, reply) => {
      const { media, instance } = await getStorageOrRefuse(context, request.params)
      await media.erase(instance.id, request.params.mediaId)
      return reply.code(204).send(null)
    },
  )
}
