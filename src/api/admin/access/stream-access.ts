import type { FastifyRequest } from 'fastify'
import type { ApiContext } from '../../context.ts'
import type { EventStream } from '../../http/event-stream.ts'
import { isHttps } from '../sign-in/cookies.ts'
import { sessionDigest, sessionToken } from '../sign-in/session-cookie.ts'

/** How often the session is checked, because it may end on another node. */
const CHECK_MS = 3_000
/** After this many checks without an answer of the database, what the reader has may be wrong. */
const MAX_UNANSWERED = 3

/**
 * Ends the stream when the caller's session ends or its account's access changes. The reader connects again, with its new access.
 * Also ends it when the database has not answered for about 12 s. The reader then gets 503 and can say that the data is old.
 * @returns a function that checks at once. Call it before sending anything about an instance. False: the stream has ended
 */
export function endWithAccess(
  stream: EventStream,
  context: ApiContext,
  request: FastifyRequest,
): () => Promise<boolean> {
  const { store, settings, now, logger } = context
  if (request.sessionId === '') return async () => !stream.ended
  const access = accessOf(request.account)
  const isSecure = isHttps(request, settings.publicUrl ?? null)
  const digest = sessionDigest(sessionToken(request, isSecure) ?? '', settings.adminKey)

  async function check(): Promise<boolean> {
    const session = await store.sessions.find(digest, now())
    if (session === null || accessOf(session.account) !== access) stream.end()
    return !stream.ended
  }
  let unanswered = 0
  const timer = setInterval(() => {
    if (unanswered === MAX_UNANSWERED) stream.end()
    unanswered += 1
    check().then(
      () => {
        unanswered = 0
      },
      error => logger.debug({ err: error }, 'session.check_failed'),
    )
  }, CHECK_MS)
  stream.onEnd(() => clearInterval(timer))
  return check
}

function accessOf(account: FastifyRequest['account']): string {
  return JSON.stringify(account && [account.role, account.instances])
}
