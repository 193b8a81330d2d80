import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { sessionSchema } from '../../resources/session.ts'
import { SHOWN_OF_SESSION } from '../audit/record-changes.ts'
import { callerAddress, networkOf } from './caller-address.ts'
import { FailedSignIns, signInEntry } from './failed-sign-ins.ts'
import { findSessionView } from './get-session.ts'
import { isPassword, MAX_PASSWORD_LENGTH } from './password.ts'
import { type IsAdminKey, refuseWrongKey } from './require-admin.ts'
import { isHttps, newSessionId, newSessionToken, SESSION_MS, sessionCookie, sessionDigest } from './session-cookie.ts'
import type { WrongKeys } from './wrong-keys.ts'

const MAX_KEY_LENGTH = 1_024
const MAX_USER_AGENT_LENGTH = 300
/** Small, because callers without a key can send it. */
const MAX_BODY_BYTES = 4_096

const bodySchema = Type.Object(
  {
    key: Type.String({
      minLength: 1,
      maxLength: MAX_KEY_LENGTH,
      description: 'The admin key, or the password if one is set.',
    }),
  },
  { title: 'KeyToSignIn' },
)

/** The only call of the management API without a key in its headers. It creates the panel's session. */
export function signIn(api: Api, context: ApiContext, isAdminKey: IsAdminKey, wrongKeys: WrongKeys): void {
  const { store, settings, now } = context
  const failures = new FailedSignIns(store.audit, now)

  /**
   * A password counts as a guess before it is checked, so that concurrent guesses gain nothing. The admin key cannot be
   * guessed and is never refused.
   */
  async function check(key: string, network: string): Promise<void> {
    if (isAdminKey(key)) return
    const waitMs = await wrongKeys.count(network)
    if (waitMs > 0) throw refuseWrongKey(waitMs)
    const hash = key.length <= MAX_PASSWORD_LENGTH ? await store.sessions.findPasswordHash() : null
    if (hash !== null && (await isPassword(key, hash))) return
    throw refuseWrongKey(0)
  }

  api.post(
    '/session',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'signIn',
        summary: 'Sign in to the panel',
        description:
          'Sets the cookie of a session that lasts 7 days. The session is accepted only in requests from this site.',
        tags: ['Panel'],
        security: [],
        body: bodySchema,
        response: { 200: dataOf(sessionSchema, 'Signed in.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async (request, reply) => {
      const address = callerAddress(request)
      await check(request.body.key, networkOf(address)).catch(async error => {
        if (error instanceof Refusal) await failures.record(address)
        throw error
      })
      const token = newSessionToken()
      const id = newSessionId()
      const createdAt = now()
      const entry = signInEntry('panel', address, { session: id.slice(0, SHOWN_OF_SESSION) })
      const session = {
        id,
        tokenDigest: sessionDigest(token, settings.adminKey),
        createdAt,
        expiresAt: createdAt + SESSION_MS,
        userAgent: request.headers['user-agent']?.slice(0, MAX_USER_AGENT_LENGTH) ?? null,
      }
      await store.audit.during(entry, pending => {
        request.audit = pending
        return store.sessions.create(session)
      })
      reply.header('set-cookie', sessionCookie(token, isHttps(request, settings.publicUrl ?? null)))
      return { data: await findSessionView(context, id) }
    },
  )
}
