import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { sessionSchema } from '../../resources/people/session.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { callerAddress } from './caller-address.ts'
import { isHttps } from './cookies.ts'
import type { FailedSignIns } from './failed-sign-ins.ts'
import { findSessionView } from './get-session.ts'
import { findDevice, hasDevice } from './known-device.ts'
import { limitOfDevice, limitOfName, limitsOfCaller } from './limits.ts'
import { isPassword, MAX_PASSWORD_LENGTH, NO_PASSWORD } from './passwords/password.ts'
import { type IsAdminKey, refuseWrongKey } from './require-admin.ts'
import { type SignedIn, startSession } from './start-session.ts'
import { WrongKeys } from './wrong-keys.ts'

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

/** Creates a session of the panel. The key or password is in the body, so the call needs no key in its headers. */
export function signIn(
  api: Api,
  context: ApiContext,
  { isAdminKey, wrongKeys, failures }: { isAdminKey: IsAdminKey; wrongKeys: WrongKeys; failures: FailedSignIns },
): void {
  const { store, settings } = context
  const ofKnownDevices = new WrongKeys(store.sessions)

  /**
   * A password counts as a guess before it is checked, so that concurrent guesses gain nothing. If it is right, the count is
   * taken back. The admin key cannot be guessed and is never refused.
   */
  async function check(request: FastifyRequest, key: string, name: string | undefined): Promise<SignedIn> {
    if (name === undefined && isAdminKey(key)) return { account: null, passwordHash: null }
    const isSecure = isHttps(request, settings.publicUrl ?? null)
    const device = hasDevice(request, isSecure) ? await findKnownDevice(request, name, isSecure) : null
    const isKnown = device !== null
    const guesses = isKnown ? ofKnownDevices : wrongKeys
    const limits = isKnown
      ? [limitOfDevice(device)]
      : [...limitsOfCaller(callerAddress(request)), limitOfName(name, settings.adminKey)]
    const waitMs = await guesses.count(limits)
    if (waitMs > 0) throw refuseWrongKey(waitMs)
    const found =
      key.length > MAX_PASSWORD_LENGTH ? null : await guesses.unlessFailed(limits, findByPassword(key, name, isKnown))
    if (found === null) throw refuseWrongKey(0)
    await guesses.uncount(limits)
    return found
  }

  async function findKnownDevice(request: FastifyRequest, name: string | undefined, isSecure: boolean) {
    const hash = (await findPassword(name))?.passwordHash ?? NO_PASSWORD
    return findDevice(request, { name, hash }, { adminKey: settings.adminKey, isSecure })
  }

  /** Null if no active account has the name, or the panel has no password. */
  async function findPassword(name: string | undefined) {
    if (name !== undefined) return store.accounts.findForSignIn(name)
    const passwordHash = await store.sessions.findPasswordHash()
    return passwordHash === null ? null : { account: null, passwordHash }
  }

  /** An unknown account takes as long as a wrong password. */
  async function findByPassword(key: string, name: string | undefined, isKnown: boolean): Promise<SignedIn | null> {
    const found = await findPassword(name)
    if (found === null && name === undefined) return null
    const isRight = await isPassword(key, found?.passwordHash ?? NO_PASSWORD, isKnown)
    return isRight ? found : null
  }

  api.post(
    '/session',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'signIn',
        summary: 'Sign in to the panel',
        description:
          'Sets the cookie of a session of 7 days, which only requests from this site may use. With a password, it sets a second ' +
          'cookie, without access: it keeps this browser from being locked out when somebody guesses passwords elsewhere.',
        tags: ['Panel'],
        security: [],
        body: bodySchema,
        response: { 200: dataOf(sessionSchema, 'Signed in.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async (request, reply) => {
      const { key, name } = request.body
      const who = await check(request, key, name).catch(async error => {
        // The service was busy, so nothing was checked.
        const isFailed = error instanceof Refusal && error.code !== 'service_unavailable'
        if (isFailed) await failures.record(callerAddress(request))
        throw error
      })
      const id = await startSession(context, request, reply, who)
      return { data: await findSessionView(context, id, who.account) }
    },
  )
}
