import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Refusal, type RefusalCode } from '../../../../domain/refusal.ts'
import type { Api, ApiContext, OidcApi } from '../../../context.ts'
import { sessionSchema } from '../../../resources/people/session.ts'
import { dataOf } from '../../../resources/schema-kit.ts'
import { callerAddress } from '../caller-address.ts'
import { isHttps } from '../cookies.ts'
import type { FailedSignIns } from '../failed-sign-ins.ts'
import { findSessionView } from '../get-session.ts'
import { limitsOfAnswers } from '../limits.ts'
import { refuseWrongKey } from '../require-admin.ts'
import { type SignedIn, startSession } from '../start-session.ts'
import type { WrongKeys } from '../wrong-keys.ts'
import { endedAttemptCookie, type OpenAttempt, readAttempt } from './attempt-cookie.ts'
import { acceptWithLogin, findAccount, identityOf } from './find-account.ts'
import { providerFor } from './own-pages.ts'
import type { ProviderCalls } from './provider-calls.ts'

const MAX_BODY_BYTES = 16_384
const MAX_ANSWER_LENGTH = 12_000

const bodySchema = Type.Object(
  {
    answer: Type.String({
      maxLength: MAX_ANSWER_LENGTH,
      description: 'The query string with which the provider sent the browser back.',
    }),
  },
  { title: 'AnswerOfProvider' },
)

/** Not counted as failed sign-ins: the answer was not checked, or the person changed their mind. */
const NOT_FAILED: ReadonlySet<RefusalCode> = new Set(['oidc_unreachable', 'oidc_denied', 'service_unavailable'])

interface Parts {
  wrongKeys: WrongKeys
  failures: FailedSignIns
  calls: ProviderCalls
}

export function finishOidcSignIn(api: Api, context: ApiContext, { wrongKeys, failures, calls }: Parts): void {
  const { settings, now } = context

  api.post(
    '/session/oidc/finish',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'finishOidcSignIn',
        summary: 'Sign in with the answer of the OpenID Connect provider',
        description:
          'Only for pages of the panel at `PUBLIC_URL`, in the browser that called `startOidcSignIn`, and once. Sets the cookie of a ' +
          'session that lasts 7 days.',
        tags: ['Panel'],
        security: [],
        body: bodySchema,
        response: { 200: dataOf(sessionSchema, 'Signed in.') },
      },
      config: {
        refusals: [
          'invalid_request',
          'cross_site_request',
          'invitation_not_found',
          'oidc_not_configured',
          'oidc_wrong_address',
          'oidc_attempt_ended',
          'oidc_denied',
          'oidc_failed',
          'oidc_unreachable',
          'oidc_email_unverified',
          'oidc_unknown_account',
          'oidc_other_login',
          'oidc_login_taken',
        ],
      },
    },
    async (request, reply) => {
      const provider = providerFor(context, request)
      const { answer } = request.body
      const isSecure = isHttps(request, settings.publicUrl ?? null)
      const attempt = readAttempt(request, now(), { adminKey: settings.adminKey, client: provider.id, isSecure })
      // An answer of another tab, or one that another site made up, leaves the attempt as it is.
      if (attempt === null || !isAnswerTo(attempt.state, answer)) throw new Refusal('oidc_attempt_ended')
      const limits = limitsOfAnswers(callerAddress(request))
      const waitMs = await wrongKeys.count(limits)
      if (waitMs > 0) throw refuseWrongKey(waitMs)
      reply.header('set-cookie', endedAttemptCookie(isSecure))
      const who = await calls
        .run(() => identify(context, request, provider, answer, attempt))
        .catch(async error => {
          const code = error instanceof Refusal && !NOT_FAILED.has(error.code) ? error.code : null
          if (code !== null) await failures.record(callerAddress(request), { method: 'oidc', code })
          if (code !== 'oidc_failed') await wrongKeys.uncount(limits)
          throw error
        })
      await wrongKeys.uncount(limits)
      const id = await startSession(context, request, reply, who)
      return { data: await findSessionView(context, id, who.account) }
    },
  )
}

/** @throws Refusal */
async function identify(
  context: ApiContext,
  request: FastifyRequest,
  provider: OidcApi,
  answer: string,
  { invitation, ...secrets }: OpenAttempt,
): Promise<SignedIn> {
  const completed = await provider.complete(answer, secrets)
  if (completed.kind === 'denied') throw new Refusal('oidc_denied')
  if (completed.kind !== 'identified') {
    context.logger.warn({ requestId: request.id, reason: completed.reason }, `oidc.${completed.kind}`)
    throw new Refusal(completed.kind === 'failed' ? 'oidc_failed' : 'oidc_unreachable')
  }
  const address = callerAddress(request)
  const account =
    invitation === null
      ? await findAccount(context, completed, { address, requestId: request.id })
      : await acceptWithLogin(context, invitation, completed, address)
  return { account, passwordHash: null, identity: identityOf(completed) }
}

/** Whether the answer belongs to this attempt. An answer that another site made up does not reach the provider. */
function isAnswerTo(state: string, answer: string): boolean {
  const [given = '', ...more] = new URLSearchParams(answer).getAll('state')
  const [a, b] = [Buffer.from(given), Buffer.from(state)]
  return more.length === 0 && a.length === b.length && timingSafeEqual(a, b)
}
