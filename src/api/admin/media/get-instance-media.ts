import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { listedMediaSchema, listedMediaView } from '../../resources/media.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'
import { mediaParams } from './media-params.ts'

export function getInstanceMedia(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/media/:mediaId',
    {
      schema: {
        operationId: 'getInstanceMedia',
        summary: 'Read the facts about a file',
        tags: ['Message log'],
        params: mediaParams,
        response: { 200: dataOf(listedMediaSchema, 'The file.') },
      },
      config: { refusals: ['instance_not_found', 'media_not_found'] },
    },
    async request => {
      const { mediaId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const found = isId(mediaId) ? await store.media.findListed(id, mediaId) : null
      if (found === null) throw new Refusal('media_not_found')
      return { data: listedMediaView(found) }
    },
  )
}
