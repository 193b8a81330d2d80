import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import type { InstanceId } from '../../domain/ids.ts'
import { cleanFilename, MAX_FILENAME_LENGTH, type Media, parseMimetype } from '../../domain/media.ts'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import { refuseSmallChunks } from '../../kit/chunk-limit.ts'
import { checkAgain } from '../check-again.ts'
import type { Api, ApiContext } from '../context.ts'
import { mayTakeLong } from '../http/limits/slow-bodies.ts'
import { compileValidator } from '../http/schemas.ts'
import { deletedMeanwhile } from '../refusals.ts'

const FORM_OF_FILES = 'multipart/form-data'
const TOO_SMALL_CHUNKS = 'The file arrives in too many small chunks.'

export const uploadQuerySchema = Type.Object({
  filename: Type.Optional(
    Type.String({
      maxLength: MAX_FILENAME_LENGTH,
      description: 'The name of the file. Its path and misleading characters are removed.',
      examples: ['invoice.pdf'],
    }),
  ),
})

const BYTES = Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The bytes of the file.' })
export const uploadBody = { content: { '*/*': { schema: BYTES } } }

export const UPLOAD_REFUSALS: readonly RefusalCode[] = [
  'invalid_request',
  'media_too_large',
  'media_quota_exceeded',
  'too_many_transfers',
  'request_timeout',
  'unsupported_media_type',
  'media_not_configured',
]

/** Options of a route whose handler calls `receiveFile`. */
export const uploadOptions = {
  onRequest: checkType,
  validatorCompiler: (part: Parameters<typeof compileValidator>[0]) =>
    part.httpPart === 'body' ? () => true : compileValidator(part),
}

/** Registers routes whose bodies are files: their handlers read the bytes. */
export function withRawBodies(api: Api, register: (bodies: Api) => void): void {
  api.register(async (bodies: Api) => {
    bodies.removeAllContentTypeParsers()
    bodies.addContentTypeParser('*', (_request: FastifyRequest, bytes: Readable, done) => done(null, bytes))
    register(bodies)
  })
}

/** Stores the body of the request if the caller still has access when the body has arrived. @throws Refusal */
export async function receiveFile(
  context: ApiContext,
  instanceId: InstanceId,
  request: FastifyRequest,
  reply: FastifyReply,
  { filename }: Static<typeof uploadQuerySchema>,
): Promise<Media> {
  const { media } = context
  if (media === null) throw new Refusal('media_not_configured')
  const { headers } = request
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new Refusal('unsupported_media_type', 'Send the file without a Content-Encoding.')
  mayTakeLong(request.raw, reply.raw)
  const bytes = refuseSmallChunks(request.raw, () => new Refusal('invalid_request', TOO_SMALL_CHUNKS))
  try {
    return await media.upload(instanceId, {
      bytes,
      length: parseLength(headers['content-length']),
      type: headers['content-type'] ?? null,
      filename: filename === undefined ? null : cleanFilename(filename),
      ifDeleted: deletedMeanwhile(request),
      checkAgain: () => checkAgain(context, request),
    })
  } finally {
    // The connection stays open for the answer, and what still arrives is dropped.
    bytes.destroy()
  }
}

async function checkType({ headers }: FastifyRequest): Promise<void> {
  const type = headers['content-type']
  if (type !== undefined && parseMimetype(type) === null)
    throw new Refusal('unsupported_media_type', 'The Content-Type is not valid.')
  // Otherwise the whole form would be stored and sent to recipients as the file.
  if (type !== undefined && parseMimetype(type) === FORM_OF_FILES)
    throw new Refusal('unsupported_media_type', 'Send the bytes of the file as the body, not a form.')
}

function parseLength(header: string | undefined): number | null {
  return header === undefined ? null : Number(header)
}
