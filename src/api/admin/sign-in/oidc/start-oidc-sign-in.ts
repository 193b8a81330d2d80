import { Type } from 'typebox'
import { Refusal } from '../../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../../context.ts'
import { tokenDigest } from '../../../input.ts'
import { begunSignInSchema } from '../../../resources/people/sign-in.ts'
import { dataOf } from '../../../resources/schema-kit.ts'
import { invitationTokenSchema } from '../accept-invitation.ts'
import { callerAddress } from '../caller-address.ts'
import { isHttps } from '../cookies.ts'
import { limitsOfCaller } from '../limits.ts'
import { refuseWrongKey } from '../require-admin.ts'
import type { WrongKeys } from '../wrong-keys.ts'
import { attemptCookie } from './attempt-cookie.ts'
import { providerFor } from './own-pages.ts'
import type { ProviderCalls } from './provider-calls.ts'

/** Small, because callers without a key can send it. */
const MAX_BODY_BYTES = 4_096

const bodySchema = Type.Object(
  { invitation: Type.Optional(invitationTokenSchema) },
  { title: 'SignInToBegin', description: 'With `invitation`, the sign-in accepts it: no e-mail address is needed.' },
)

/** Writes no rows: the state of the sign-in is in a cookie. Only unknown invitations are limited by address. */
export function startOidcSignIn(api: Api, context: ApiContext, wrongKeys: WrongKeys, calls: ProviderCalls): void {
  const { store, settings, logger, now } = context

  async function findInvitation(token: string, address: string): Promise<string> {
    const digest = tokenDigest(token)
    if ((await store.accounts.findInvited(Buffer.from(digest, 'hex'))) !== null) return digest
    const waitMs = await wrongKeys.count(limitsOfCaller(address))
    throw waitMs > 0 ? refuseWrongKey(waitMs) : new Refusal('invitation_not_found')
  }

  api.post(
    '/session/oidc',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'startOidcSignIn',
        summary: 'Begin to sign in with the OpenID Connect provider',
        description:
          'Only for pages of the panel at `PUBLIC_URL`. Sets a cookie that lasts 10 minutes, which `finishOidcSignIn` needs.',
        tags: ['Panel'],
        security: [],
        body: bodySchema,
        response: { 200: dataOf(begunSignInSchema, 'Begun.') },
      },
      config: {
        refusals: [
          'invalid_request',
          'cross_site_request',
          'invitation_not_found',
          'oidc_not_configured',
          'oidc_wrong_address',
          'oidc_unreachable',
        ],
      },
    },
    async (request, reply) => {
      const provider = providerFor(context, request)
      const token = request.body.invitation
      const invitation = token === undefined ? null : await findInvitation(token, callerAddress(request))
      const begun = await calls.run(() => provider.begin())
      if (begun.kind === 'unreachable') {
        logger.warn({ requestId: request.id, reason: begun.reason }, 'oidc.unreachable')
        throw new Refusal('oidc_unreachable')
      }
      const isSecure = isHttps(request, settings.publicUrl ?? null)
      const signer = { adminKey: settings.adminKey, client: provider.id, isSecure }
      reply.header('set-cookie', attemptCookie({ ...begun.attempt, invitation }, now(), signer))
      return { data: { url: begun.url } }
    },
  )
}
