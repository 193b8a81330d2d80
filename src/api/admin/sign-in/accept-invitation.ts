import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { tokenDigest } from '../../input.ts'
import { sessionSchema } from '../../resources/people/session.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { callerAddress } from './caller-address.ts'
import { findSessionView } from './get-session.ts'
import { limitsOfCaller } from './limits.ts'
import { hashPassword, MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from './passwords/password.ts'
import { refuseWrongKey } from './require-admin.ts'
import { startSession } from './start-session.ts'
import type { WrongKeys } from './wrong-keys.ts'

/** Small, because callers without a key can send it. */
const MAX_BODY_BYTES = 4_096
const TOKEN_LENGTH = 43

export const invitationTokenSchema = Type.String({
  minLength: TOKEN_LENGTH,
  maxLength: TOKEN_LENGTH,
  description: 'What follows `#` in the link.',
})

const bodySchema = Type.Object(
  {
    token: invitationTokenSchema,
    password: Type.String({ minLength: MIN_PASSWORD_LENGTH, maxLength: MAX_PASSWORD_LENGTH }),
  },
  { title: 'InvitationToAccept' },
)

/** Opening the link changes nothing. This call uses it up. Only a caller with a valid token causes a password to be hashed. */
export function acceptInvitation(api: Api, context: ApiContext, wrongKeys: WrongKeys): void {
  const { store } = context
  api.post(
    '/invitations/accept',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'acceptInvitation',
        summary: 'Set the password of an invited account',
        description: 'Works once for each link. Ends the sessions of the account, and signs in.',
        tags: ['Accounts'],
        security: [],
        body: bodySchema,
        response: { 200: dataOf(sessionSchema, 'Signed in.') },
      },
      config: { refusals: ['invalid_request', 'invitation_not_found'] },
    },
    async (request, reply) => {
      const { token, password } = request.body
      const digest = Buffer.from(tokenDigest(token), 'hex')
      const invited = await store.accounts.findInvited(digest)
      if (invited === null) {
        const waitMs = await wrongKeys.count(limitsOfCaller(callerAddress(request)))
        throw waitMs > 0 ? refuseWrongKey(waitMs) : new Refusal('invitation_not_found')
      }
      const passwordHash = await hashPassword(password, invited.id)
      const entry = {
        actor: invited.id,
        actorName: invited.name,
        action: 'acceptInvitation',
        instanceId: null,
        address: callerAddress(request),
        details: {},
      }
      const { account, accepted } = await store.audit.during(entry, async pending => ({
        account: await store.accounts.accept(digest, passwordHash),
        accepted: pending,
      }))
      if (account === null) throw new Refusal('invitation_not_found')
      const id = await startSession(context, request, reply, { account, passwordHash })
      // The sign-in has an audit record of its own. The log line of this call names the record of the invitation.
      request.audit = accepted
      return { data: await findSessionView(context, id, account) }
    },
  )
}
