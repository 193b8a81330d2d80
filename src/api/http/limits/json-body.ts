import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api } from '../../context.ts'

/** 1 MiB (contract §1). */
export const MAX_BODY_BYTES = 1_048_576

/**
 * Accepts only JSON objects. `JSON.parse` treats `__proto__` as an ordinary field, and nothing reads it. An empty body
 * counts as no body.
 */
export function acceptJsonBodies(api: Api): void {
  api.removeAllContentTypeParsers()
  api.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, parseJson)
}

function parseJson(request: FastifyRequest, bytes: Buffer, done: (error: Error | null, body?: unknown) => void): void {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    done(new Refusal('unsupported_media_type', 'Send the body without a Content-Encoding.'))
  } else if (bytes.length === 0) {
    done(null, undefined)
  } else if (!isUtf8(bytes)) {
    done(new Refusal('invalid_request', 'The body is not valid UTF-8.'))
  } else {
    const body = tryParse(bytes.toString())
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) done(null, body)
    else done(new Refusal('invalid_request', 'The body must be a JSON object.'))
  }
}

/** Undefined if it is not JSON. */
function tryParse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
