import type { Api, ApiContext } from '../../context.ts'
import { FILE_REFUSALS, fileHeadersSchema, fileResponses, serveFile } from '../../media/serve-file.ts'
import { getStorageOrRefuse, mediaParams } from './media-params.ts'

export function downloadInstanceMedia(api: Api, context: ApiContext): void {
  api.get(
    '/instances/:id/media/:mediaId/content',
    {
      schema: {
        operationId: 'downloadInstanceMedia',
        summary: 'Download a file of an instance',
        description: "Like `getMedia`, but without the instance's token and outside its limits of calls and downloads.",
        tags: ['Message log'],
        params: mediaParams,
        headers: fileHeadersSchema,
        response: fileResponses,
      },
      config: { refusals: ['instance_not_found', ...FILE_REFUSALS] },
    },
    async (request, reply) => {
      const { media, instance } = await getStorageOrRefuse(context, request.params)
      return serveFile(request, reply, await media.open(instance.id, request.params.mediaId, 'preview'))
    },
  )
}
