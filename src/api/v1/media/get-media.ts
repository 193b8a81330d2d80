import { Readable } from 'node:stream'
import { Type } from 'typebox'
import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { readWithinMs } from '../../http/limits/one-request-per-connection.ts'
import { isId } from '../../input.ts'
import { mediaIdSchema } from '../../resources/media.ts'
import { attachmentHeader, etagOf, isKnown, parseRange } from './download-headers.ts'
import { openWhenThere } from './wait-for-media.ts'

const headersSchema = Type.Object({
  Range: Type.Optional(
    Type.String({ description: 'One range of bytes, such as `bytes=0-1023`. Several are ignored.' }),
  ),
  'If-None-Match': Type.Optional(Type.String({ description: 'The `ETag` of a copy that the caller has.' })),
})

const MAX_WAIT_SECONDS = 25

const querySchema = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      default: 0,
      description: 'If a received file is still being fetched from WhatsApp, wait for it up to this many seconds.',
    }),
  ),
})

const BYTES = Type.Unsafe<unknown>({ type: 'string', format: 'binary' })

/** Even if a browser shows the file in spite of the other headers, nothing in it runs. */
const SANDBOX = "default-src 'none'; frame-ancestors 'none'; sandbox"

export function getMedia(api: Api, { media, store }: ApiContext): void {
  const waiting = new Map<InstanceId, number>()
  api.get(
    '/media/:id',
    {
      schema: {
        operationId: 'getMedia',
        summary: 'Download a file',
        description:
          'Returns the bytes. `Range` and `ETag` work, so an interrupted download can be continued. A file that somebody sent ' +
          'to the instance is fetched from WhatsApp first: until then the answer is 409 `media_pending`.',
        tags: ['Media'],
        params: Type.Object({ id: mediaIdSchema }),
        querystring: querySchema,
        headers: headersSchema,
        response: {
          200: { description: 'The file.', content: { '*/*': { schema: BYTES } } },
          206: { description: 'The requested range.', content: { '*/*': { schema: BYTES } } },
          304: Type.Null({ description: 'The caller has the file.' }),
        },
      },
      config: {
        scope: 'media',
        refusals: [
          'invalid_request',
          'media_not_found',
          'media_gone',
          'media_pending',
          'range_not_satisfiable',
          'too_many_transfers',
          'media_not_configured',
        ],
      },
    },
    async (request, reply) => {
      if (media === null) throw new Refusal('media_not_configured')
      const { id } = request.params
      const { headers } = request.raw
      if (!isId(id)) throw new Refusal('media_not_found')
      const { wait: seconds = 0 } = request.query
      const wait = { hints: store.hints, waiting, waitMs: seconds * 1_000, gone: closedSignal(reply.raw) }
      const { media: found, read } = await openWhenThere(media, request.instanceId, id, wait)
      const etag = etagOf(found.sha256)
      reply.headers({ etag, 'accept-ranges': 'bytes' })
      if (isKnown(headers['if-none-match'], etag)) return reply.code(304).send(null)
      const isSame = headers['if-range'] === undefined || headers['if-range'] === etag
      // Ranges are defined for GET only (RFC 9110, section 14.2).
      const isRanged = isSame && request.method === 'GET'
      const range = parseRange(isRanged ? headers.range : undefined, found.size)
      if (range === 'unsatisfiable') {
        reply.header('content-range', `bytes */${found.size}`)
        throw new Refusal('range_not_satisfiable')
      }
      const { from, to } = range ?? { from: 0, to: found.size - 1 }
      const length = to + 1 - from
      const bytes = request.method === 'HEAD' ? null : await read({ from, to })
      if (range !== null) reply.code(206).header('content-range', `bytes ${from}-${to}/${found.size}`)
      reply.type(found.mimetype).headers({
        'content-length': length,
        'content-disposition': attachmentHeader(found.filename),
        'content-security-policy': SANDBOX,
      })
      // HEAD gets an empty stream, because without a body Fastify would state that the length is 0.
      const body = bytes === null ? Readable.from([]) : limitTime(Readable.from(bytes, { objectMode: false }), length)
      return reply.send(body)
    },
  )
}

/** Aborted when the caller has left. */
function closedSignal(response: NodeJS.EventEmitter): AbortSignal {
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  return closed.signal
}

/** A caller that does not read must not keep the file open. */
function limitTime(body: Readable, length: number): Readable {
  const late = setTimeout(() => body.destroy(), readWithinMs(length))
  return body.once('close', () => clearTimeout(late))
}
