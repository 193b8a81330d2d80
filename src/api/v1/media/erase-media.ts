import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { mediaIdSchema } from '../../resources/media.ts'

export function eraseMedia(api: Api, { media }: ApiContext): void {
  api.delete(
    '/media/:id',
    {
      schema: {
        operationId: 'eraseMedia',
        summary: 'Erase a file',
        description:
          'The file cannot be read any more, and its bytes are removed. Later calls for the file get 410 `media_gone`. A ' +
          'received file that is not stored yet is no longer fetched, and neither `media.ready` nor `media.failed` follows.',
        tags: ['Media'],
        params: Type.Object({ id: mediaIdSchema }),
        response: { 204: Type.Null({ description: 'Erased.' }) },
      },
      config: { scope: 'media', refusals: ['media_not_found', 'media_gone', 'media_in_use', 'media_not_configured'] },
    },
    async (request, reply) => {
      if (media === null) throw new Refusal('media_not_configured')
      const { id } = request.params
      if (!isId(id)) throw new Refusal('media_not_found')
      await media.erase(request.instanceId, id)
      return reply.code(204).send(null)
    },
  )
}
