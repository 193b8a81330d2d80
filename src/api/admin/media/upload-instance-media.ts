import type { Api, ApiContext } from '../../context.ts'
import {
  receiveFile,
  UPLOAD_REFUSALS,
  uploadBody,
  uploadOptions,
  uploadQuerySchema,
  withRawBodies,
} from '../../media/receive-file.ts'
import { mediaSchema, mediaView } from '../../resources/media.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams } from '../instances/instance-params.ts'
import { getStorageOrRefuse } from './media-params.ts'

export function uploadInstanceMedia(api: Api, context: ApiContext): void {
  withRawBodies(api, bodies => {
    bodies.post(
      '/instances/:id/media',
      {
        ...uploadOptions,
        schema: {
          operationId: 'uploadInstanceMedia',
          summary: 'Upload a file for an instance',
          description: "Like `uploadMedia`, but without the instance's token and outside its rate limit.",
          tags: ['Message log'],
          params: instanceParams,
          querystring: uploadQuerySchema,
          body: uploadBody,
          response: { 201: dataOf(mediaSchema, 'Stored.') },
        },
        config: { rawBody: true, refusals: ['instance_not_found', ...UPLOAD_REFUSALS] },
      },
      async (request, reply) => {
        const { instance } = await getStorageOrRefuse(context, request.params)
        const stored = await receiveFile(context, instance.id, request, reply, request.query)
        return reply.code(201).send({ data: mediaView(stored) })
      },
    )
  })
}
