import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { cleanFilename, MAX_FILENAME_LENGTH, parseMimetype } from '../../../domain/media.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { mayTakeLong } from '../../http/limits/slow-bodies.ts'
import { compileValidator } from '../../http/validation.ts'
import { mediaSchema, mediaView } from '../../resources/media.ts'
import { dataOf } from '../../resources/schema-kit.ts'

const querySchema = Type.Object({
  filename: Type.Optional(
    Type.String({
      maxLength: MAX_FILENAME_LENGTH,
      description: 'The name of the file. Path and control characters are dropped.',
      examples: ['invoice.pdf'],
    }),
  ),
})

const BYTES = Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The bytes of the file.' })

export function uploadMedia(api: Api, { media }: ApiContext): void {
  api.register(async (bodies: Api) => {
    bodies.removeAllContentTypeParsers()
    bodies.addContentTypeParser('*', (_request: FastifyRequest, bytes: Readable, done) => done(null, bytes))
    bodies.post(
      '/media',
      {
        onRequest: checkType,
        validatorCompiler: part => (part.httpPart === 'body' ? () => true : compileValidator(part)),
        schema: {
          operationId: 'uploadMedia',
          summary: 'Upload a file',
          description:
            'The body is the file itself, with its `Content-Type`. 201 means that the file is stored; it is erased at ' +
            '`expiresAt`. The same content is stored once: uploading it again returns the same ID, with a later `expiresAt`. ' +
            'At most 16 MiB for an image, 64 MiB for audio and video, 100 MiB for anything else.',
          tags: ['Media'],
          querystring: querySchema,
          body: { content: { '*/*': { schema: BYTES } } },
          response: { 201: dataOf(mediaSchema, 'Stored.') },
        },
        config: {
          scope: 'media',
          rawBody: true,
          refusals: [
            'invalid_request',
            'media_too_large',
            'media_quota_exceeded',
            'too_many_transfers',
            'request_timeout',
            'unsupported_media_type',
            'media_not_configured',
          ],
        },
      },
      async (request, reply) => {
        if (media === null) throw new Refusal('media_not_configured')
        const { headers, query } = request
        if ((headers['content-encoding'] ?? 'identity') !== 'identity')
          throw new Refusal('unsupported_media_type', 'Send the file without a Content-Encoding.')
        mayTakeLong(request.raw, reply.raw)
        const stored = await media.upload(request.instanceId, {
          // If the rest of the body is not read, the connection stays open for the answer.
          bytes: request.raw.iterator({ destroyOnReturn: false }),
          length: parseLength(headers['content-length']),
          type: headers['content-type'] ?? null,
          filename: query.filename === undefined ? null : cleanFilename(query.filename),
        })
        return reply.code(201).send({ data: mediaView(stored) })
      },
    )
  })
}

async function checkType({ headers }: FastifyRequest): Promise<void> {
  const type = headers['content-type']
  if (type !== undefined && parseMimetype(type) === null)
    throw new Refusal('unsupported_media_type', 'The Content-Type is not valid.')
}

function parseLength(header: string | undefined): number | null {
  return header === undefined ? null : Number(header)
}
