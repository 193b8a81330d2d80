import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { sessionSchema } from '../../resources/people/session.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { callerAddress, networkOf } from './caller-address.ts'
import { FailedSignIns } from './failed-sign-ins.ts'
import { findSessionView } from './get-session.ts'
import { isPassword, MAX_PASSWORD_LENGTH, NO_PASSWORD } from './passwords/password.ts'
import { type IsAdminKey, refuseWrongKey } from './require-admin.ts'
import { type SignedIn, startSession } from './start-session.ts'
import type { WrongKeys } from './wrong-keys.ts'

const MAX_KEY_LENGTH = 1_024
const MAX_NAME_LENGTH = 200
/** Small, because callers without a key can send it. */
const MAX_BODY_BYTES = 4_096

const bodySchema = Type.Object(
  {
    key: Type.String({
      minLength: 1,
      maxLength: MAX_KEY_LENGTH,
      description: "The admin key, or the panel's password if one is set; with `name`, the password of the account.",
    }),
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'The name of an account.' }),
    ),
  },
  { title: 'KeyToSignIn' },
)

/** The call without a key in its headers that creates a session of the panel. */
export function signIn(api: Api, context: ApiContext, isAdminKey: IsAdminKey, wrongKeys: WrongKeys): void {
  const { store, now } = context
  const failures = new FailedSignIns(store.audit, now)

  /**
   * A password counts as a guess before it is checked, so that concurrent guesses gain nothing. The admin key cannot be
   * guessed and is never refused. An unknown account takes as long as a wrong password.
   */
  async function check(key: string, name: string | undefined, network: string): Promise<SignedIn> {
    if (name === undefined && isAdminKey(key)) return { account: null, passwordHash: null }
    const waitMs = await wrongKeys.count(network)
    if (waitMs > 0) throw refuseWrongKey(waitMs)
    if (key.length > MAX_PASSWORD_LENGTH) throw refuseWrongKey(0)
    if (name === undefined) {
      const passwordHash = await store.sessions.findPasswordHash()
      if (passwordHash !== null && (await isPassword(key, passwordHash))) return { account: null, passwordHash }
      throw refuseWrongKey(0)
    }
    const found = await store.accounts.findForSignIn(name)
    const isRight = await isPassword(key, found?.passwordHash ?? NO_PASSWORD)
    if (found === null || !isRight) throw refuseWrongKey(0)
    return found
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
      const { key, name } = request.body
      const address = callerAddress(request)
      const who = await check(key, name, networkOf(address)).catch(async error => {
        if (error instanceof Refusal) await failures.record(address)
        throw error
      })
      const id = await startSession(context, request, reply, who)
      return { data: await findSessionView(context, id, who.account) }
    },
  )
}
