import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import type { Admission, Admitted } from '../../store/store.ts'
import { parseBearer } from '../bearer.ts'
import { tokenDigest } from '../token.ts'

/** Bytes of a body that may be read before its caller is known. */
const SMALL_BODY_BYTES = 16_384

/**
 * The first two checks of every call under `/v1` (decisions §1): the token (401), then the rate (429). They run before
 * the body is read; for a small one that brings a message, together with its acceptance, so that both cost one visit to
 * the database. From then on every answer carries the state of the rate window.
 */
export function createAdmission(admission: Admission) {
  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const token = parseBearer(request.headers.authorization)
    if (token === null) {
      done(new Refusal('invalid_token'))
      return
    }
    const digest = tokenDigest(token)
    if (admission.admitAndAccept && bringsSmallMessage(request)) {
      request.unadmitted = digest
      done()
      return
    }
    admission.admit(digest).then(admitted => {
      done(refuse(request, reply, admitted) ?? undefined)
    }, done)
  }
}

/** Makes up for what `createAdmission` put off. The first two checks come before all that was found wrong meanwhile. */
export async function admitLate(admission: Admission, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (request.unadmitted === null) return
  const digest = request.unadmitted
  request.unadmitted = null
  const refusal = refuse(request, reply, await admission.admit(digest))
  if (refusal !== null) throw refusal
}

/** The call is counted: the answer says so. */
export function noteAdmitted(request: FastifyRequest, reply: FastifyReply, admitted: Admitted): void {
  request.unadmitted = null
  request.instanceId = admitted.instanceId
  request.hasKey = true
  reply.header('ratelimit-limit', admitted.limit)
  reply.header('ratelimit-remaining', admitted.remaining)
  reply.header('ratelimit-reset', resetSecondsOf(admitted))
}

function refuse(request: FastifyRequest, reply: FastifyReply, admitted: Admitted | null): Refusal | null {
  if (admitted === null) return new Refusal('invalid_token')
  noteAdmitted(request, reply, admitted)
  if (admitted.withinRate) return null
  const resetSeconds = resetSecondsOf(admitted)
  const message = `More than ${admitted.limit} requests per minute: wait ${resetSeconds} s.`
  return new Refusal('rate_limit_exceeded', message, { retryAfterSeconds: resetSeconds })
}

function bringsSmallMessage({ headers, routeOptions }: FastifyRequest): boolean {
  const { bringsMessage = false } = routeOptions.config
  return bringsMessage && Number(headers['content-length']) <= SMALL_BODY_BYTES
}

function resetSecondsOf({ resetMs }: Admitted): number {
  return Math.ceil(resetMs / 1000)
}
