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

export function uploadMedia(api: Api, context: ApiContext): void {
  withRawBodies(api, bodies => {
    bodies.post(
      '/media',
      {
        ...uploadOptions,
        schema: {
          operationId: 'uploadMedia',
          summary: 'Upload a file',
          description:
            'The body is the file itself, with its `Content-Type`. 201 means that the file is stored; it is erased at ' +
            '`expiresAt`. The same content is stored once: uploading it again returns the same ID, with a later `expiresAt`. ' +
            'At most 16 MiB for an image, 64 MiB for audio and video, 100 MiB for anything else.',
          tags: ['Media'],
          querystring: uploadQuerySchema,
          body: uploadBody,
          response: { 201: dataOf(mediaSchema, 'Stored.') },
        },
        config: { scope: 'media', rawBody: true, refusals: UPLOAD_REFUSALS },
      },
      async (request, reply) => {
        const stored = await receiveFile(context, request.instanceId, request, reply, request.query)
        return reply.code(201).send({ data: mediaView(stored) })
      },
    )
  })
}
