import type { Api, ApiContext } from '../../context.ts'
import { mediaUsageSchema } from '../../resources/media.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams } from '../instances/instance-params.ts'
import { getStorageOrRefuse } from './media-params.ts'

export function getMediaUsage(api: Api, context: ApiContext): void {
  api.get(
    '/instances/:id/media-usage',
    {
      schema: {
        operationId: 'getMediaUsage',
        summary: 'Read how much storage the files of an instance take',
        tags: ['Message log'],
        params: instanceParams,
        response: { 200: dataOf(mediaUsageSchema, 'What is used, and the most that may be used.') },
      },
      config: { refusals: ['instance_not_found', 'media_not_configured'] },
    },
    async request => {
      const { media, instance } = await getStorageOrRefuse(context, request.params)
      return { data: { bytes: await context.store.media.readUsage(instance.id), quotaBytes: media.quotaBytes } }
    },
  )
}
