import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import { InvalidCursor, StoreUnavailable } from '../../store/errors.ts'

/** The `Retry-After` of a `service_unavailable` that names no other time. */
const UNAVAILABLE_RETRY_SECONDS = 2

/** Fastify's errors that have a refusal code of their own. */
const FASTIFY_CODES: Readonly<Record<string, RefusalCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
}

/** The envelope of every error (contract §1). @param requestId as in the header `X-Request-Id` */
export function errorBody(
  { code, message, details }: Pick<Refusal, 'code' | 'message' | 'details'>,
  requestId: string,
): string {
  return JSON.stringify({ error: { code, message, ...(details && { details }), requestId } })
}

export function unavailable(): Refusal {
  return new Refusal('service_unavailable')
}

/** @returns null if the error is a bug */
function parseRefusal(error: unknown): Refusal | null {
  if (error instanceof Refusal) return error
  if (error instanceof StoreUnavailable) return unavailable()
  if (error instanceof InvalidCursor) return invalid('cursor', 'must be the nextCursor of an earlier page')
  if (!(error instanceof Error)) return null
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown }
  if (typeof code === 'string' && FASTIFY_CODES[code]) return new Refusal(FASTIFY_CODES[code])
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? new Refusal('invalid_request') : null
}

/** `invalid_request` for one field. @param message follows the field's name: "must be …" */
export function invalid(field: string, message: string): Refusal {
  return new Refusal('invalid_request', `"${field}" ${message}.`, { details: [{ field, message }] })
}

/** Answers any thrown error. Details of a bug are logged with the request ID and never sent to the caller. */
export function createErrorHandler(logger: Logger) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const refusal = parseRefusal(error) ?? new Refusal('internal_error')
    request.refusalCode = refusal.code
    if (refusal.code === 'internal_error') logger.error({ err: error, requestId: request.id }, 'request.failed')
    if (refusal.code === 'service_unavailable')
      logger.warn({ err: error, requestId: request.id }, 'request.unavailable')
    // Keep the connection and discard the rest of the body: closing could lose the answer.
    reply.removeHeader('connection')
    if (refusal.status === 401) reply.header('www-authenticate', 'Bearer')
    if (refusal.retryAfterSeconds !== undefined) reply.header('retry-after', refusal.retryAfterSeconds)
    else if (refusal.code === 'service_unavailable') reply.header('retry-after', UNAVAILABLE_RETRY_SECONDS)
    reply.code(refusal.status).type('application/json; charset=utf-8').send(errorBody(refusal, request.id))
  }
}
