import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import type { MediaApi } from '../context.ts'
import { readWithinMs } from '../http/limits/one-request-per-connection.ts'
import { attachmentHeader, etagOf, isKnown, parseRange } from './download-headers.ts'

export const fileHeadersSchema = Type.Object({
  Range: Type.Optional(
    Type.String({ description: 'One range of bytes, such as `bytes=0-1023`. A list of ranges is ignored.' }),
  ),
  'If-Range': Type.Optional(
    Type.String({
      description: 'With `Range`: the `ETag` of the copy. If the file has a different one, all of it is returned.',
    }),
  ),
  'If-None-Match': Type.Optional(Type.String({ description: 'The `ETag` of a copy that the caller has.' })),
})

export const BYTES = Type.Unsafe<unknown>({ type: 'string', format: 'binary' })

export const fileResponses = {
  200: { description: 'The file.', content: { '*/*': { schema: BYTES } } },
  206: { description: 'The requested range.', content: { '*/*': { schema: BYTES } } },
  304: Type.Null({ description: 'The caller already has the file.' }),
}

export const FILE_REFUSALS: readonly RefusalCode[] = [
  'media_not_found',
  'media_gone',
  'media_pending',
  'range_not_satisfiable',
  'too_many_transfers',
  'media_not_configured',
]

/** Even if a browser shows the file in spite of the other headers, nothing in it runs. */
const SANDBOX = "default-src 'none'; frame-ancestors 'none'; sandbox"

/** Answers with the bytes of a file, or the requested range of them. @throws Refusal */
export async function serveFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { media: found, read }: Awaited<ReturnType<MediaApi['open']>>,
): Promise<FastifyReply> {
  const { headers } = request.raw
  const etag = etagOf(found.sha256)
  reply.headers({ etag, 'accept-ranges': 'bytes' })
  // Without a payload, because Fastify would state the length of a JSON `null` as the length of the file.
  if (isKnown(headers['if-none-match'], etag)) return reply.code(304).send()
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
  return reply.send(bytes === null ? Readable.from([]) : limitTime(Readable.from(bytes, { objectMode: false }), length))
}

/** A caller that does not read must not keep the file open. */
function limitTime(body: Readable, length: number): Readable {
  const late = setTimeout(() => body.destroy(), readWithinMs(length))
  return body.once('close', () => clearTimeout(late))
}
