import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import { areChunksTooSmall } from '../../kit/chunk-limit.ts'
import { callerAddress } from '../admin/sign-in/caller-address.ts'
import { checkAgain } from '../check-again.ts'
import type { Api, ApiContext } from '../context.ts'

// The parts that every request has: an ID, a target, a Host header, perhaps a JSON body, and a line in the log.

const KIB = 1_024
const MIB = 1_048_576
/** Contract §1. */
export const MAX_BODY_BYTES = MIB
const NO_BYTES = Buffer.alloc(0)
/** A body that is sent together with its headers arrives within this time after the first check of access. */
const AT_ONCE_MS = 50
/** The time that the rest of a body in too many chunks may take. */
const REST_WITHIN_MS = 1_000
/** 1–128 visible ASCII characters (contract §1). */
const KEPT = /^[\x21-\x7e]{1,128}$/
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*\/?/i
/** Statuses that are logged with the caller's address, to find guessing and excessive callers. */
const REFUSED_CALLERS: ReadonlySet<number> = new Set([401, 429])

/**
 * Keeps a valid ID of the caller. Otherwise creates one, with 20 random digits: a counter would show callers how many
 * requests others make. The digits are taken from a UUID, because Node caches random bytes for UUIDs.
 */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const callerId = headers['x-request-id']
  if (typeof callerId === 'string' && KEPT.test(callerId)) return callerId
  const uuid = randomUUID()
  return `req_${uuid.slice(0, 8)}${uuid.slice(24)}`
}

/**
 * The request target as a path for the router. The absolute form (RFC 9112 §3.2.2) loses its authority. A path with
 * invalid percent-encoding is taken literally, so that it leads to a 404.
 */
export function readableTarget({ url: target = '/' }: { url?: string | undefined }): string {
  const local = target.startsWith('/') ? target : target.replace(ABSOLUTE_FORM, '/')
  if (!local.includes('%')) return local
  const end = local.search(/[?#]/)
  const path = end === -1 ? local : local.slice(0, end)
  return isDecodable(path) ? local : path.replaceAll('%', '%25') + local.slice(path.length)
}

function isDecodable(path: string): boolean {
  try {
    // The result must be used: the bundler drops the call otherwise.
    return decodeURIComponent(path).length > 0
  } catch {
    return false
  }
}

/** An HTTP/1.1 request has exactly one valid Host header (RFC 9112 §3.2). */
export function checkHost({ headersDistinct, httpVersion }: IncomingMessage): Refusal | undefined {
  const [host, other] = headersDistinct['host'] ?? []
  // A proxy may have used the other header.
  if (other !== undefined) return new Refusal('invalid_request', 'There is more than one Host header.')
  if (host === undefined) {
    return httpVersion === '1.0' ? undefined : new Refusal('invalid_request', 'The Host header is missing.')
  }
  return URL.canParse(`http://${host}`) ? undefined : new Refusal('invalid_request', 'The Host header is malformed.')
}

/**
 * Accepts only JSON objects. `JSON.parse` treats `__proto__` as an ordinary field, and nothing reads it. An empty body
 * counts as no body, whatever its type is: `curl -X POST -d ''` names that of a form. The body of a call that takes none is
 * dropped, because it may be large and the call may take long. If the body took long to arrive, access is checked again,
 * because it may have ended meanwhile. Handlers that read the body themselves, or wait for something else before they change anything,
 * call `checkAgain`.
 */
export function acceptJsonBodies(api: Api, context: ApiContext): void {
  api.removeAllContentTypeParsers()
  api.addHook('preParsing', ({ raw: { headers } }, _reply, source, done) => {
    const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
    if (isEmpty) delete headers['content-type']
    done(null, source)
  })
  api.addContentTypeParser('application/json', async (request: FastifyRequest, source: Readable) => {
    const bytes = await readBody(request, source)
    if (performance.now() - request.checkedAt > AT_ONCE_MS) await checkAgain(context, request)
    const encoding = request.headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity') {
      throw new Refusal('unsupported_media_type', 'Send the body without a Content-Encoding.')
    }
    if (bytes.length === 0) return undefined
    if (!isUtf8(bytes)) throw new Refusal('invalid_request', 'The body is not valid UTF-8.')
    let body: unknown
    try {
      body = JSON.parse(bytes.toString())
    } catch {
      // Not JSON, and therefore not an object.
    }
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      throw new Refusal('invalid_request', 'The body must be a JSON object.')
    }
    return request.routeOptions.schema?.body === undefined ? undefined : body
  })
}

function tooLarge(bodyLimit: number): Refusal {
  const limit = bodyLimit < MIB ? `${bodyLimit / KIB} KiB` : `${bodyLimit / MIB} MiB`
  return new Refusal('payload_too_large', `The body is too large: at most ${limit}.`)
}

/**
 * Reads a body up to the size limit of its route. Chunks are copied and not kept, because each takes some 300 bytes of memory,
 * even if it contains only one. A caller that sends too many small chunks is disconnected, unless the body ends soon.
 * @throws Refusal if the body is too large, has too many small chunks, or ends early
 */
function readBody({ raw, headers, routeOptions: { bodyLimit } }: FastifyRequest, source: Readable): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let bytes: Buffer = NO_BYTES
  let length = 0
  let chunks = 0

  function add(chunk: Buffer): void {
    const needed = length + chunk.length
    chunks += 1
    if (needed > bodyLimit) refuse(tooLarge(bodyLimit))
    else if (areChunksTooSmall(chunks, needed)) {
      setTimeout(() => raw.complete || raw.socket.destroy(), REST_WITHIN_MS).unref()
      refuse(new Refusal('payload_too_large', 'The body arrives in too many small chunks.'))
    } else if (length === 0) {
      bytes = chunk
      length = needed
    } else {
      if (needed > bytes.length) bytes = Buffer.concat([bytes.subarray(0, length)], Math.max(needed, 2 * length))
      chunk.copy(bytes, length)
      length = needed
    }
  }

  function refuse(refusal: Refusal): void {
    // The stream stays open for the answer. What still arrives is dropped.
    source.off('data', add)
    reject(refusal)
  }

  if (Number(headers['content-length']) > bodyLimit) refuse(tooLarge(bodyLimit))
  else {
    source
      .on('data', add)
      .on('end', () => resolve(bytes.subarray(0, length)))
      .on('error', () => refuse(new Refusal('invalid_request', 'The body ended early.')))
  }
  return promise
}

const UNKNOWN = { method: 'unknown', route: 'unknown' }

/**
 * Logs one line per answered request, and counts the request. The line contains the route, but neither path, query,
 * headers nor body, so it holds no secrets. Requests without a route count together, because a caller could make up any
 * number of paths and methods.
 */
export function recordAnswers({ logger, observer }: Pick<ApiContext, 'logger' | 'observer'>) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { method, routeOptions } = request
    const { config, url } = routeOptions
    const level = config.quiet ? 'debug' : 'info'
    if (logger.isLevelEnabled(level)) {
      logger[level](
        {
          requestId: request.id,
          method,
          route: url,
          status: reply.statusCode,
          code: request.refusalCode || undefined,
          instanceId: request.instanceId || undefined,
          messageId: request.messageId || undefined,
          address: REFUSED_CALLERS.has(reply.statusCode) ? callerAddress(request) : undefined,
          durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
        },
        'request.answered',
      )
    }
    const isStream = String(reply.raw.getHeader('content-type')).startsWith('text/event-stream')
    observer?.onRequest({
      ...(url === undefined ? UNKNOWN : { method, route: url }),
      status: reply.statusCode,
      durationMs: isStream ? null : reply.elapsedTime,
    })
    done()
  }
}
