import { Type } from 'typebox'
import { Refusal } from '../../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../../context.ts'
import { invalid } from '../../../http/error-handler.ts'
import { isHttps } from '../cookies.ts'
import { deviceCookie } from '../known-device.ts'
import { limitOfAccount } from '../limits.ts'
import { refuseWrongKey } from '../require-admin.ts'
import { WrongKeys } from '../wrong-keys.ts'
import { hashPassword, isPassword, MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from './password.ts'

const bodySchema = Type.Object(
  {
    oldPassword: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_LENGTH }),
    newPassword: Type.String({ minLength: MIN_PASSWORD_LENGTH, maxLength: MAX_PASSWORD_LENGTH }),
  },
  { title: 'OwnPassword' },
)

export function changeOwnPassword(api: Api, { store, settings }: ApiContext): void {
  // Somebody who finds an open session must not be able to guess the password.
  const wrongPasswords = new WrongKeys(store.sessions)
  api.post(
    '/session/password',
    {
      schema: {
        operationId: 'changeOwnPassword',
        summary: "Change the password of the caller's account",
        description:
          "Ends the account's other sessions and an open link for setting the password. Only for a session of an account: `PUT /admin/v1/password` sets the panel's password.",
        tags: ['Panel'],
        body: bodySchema,
        response: { 204: Type.Null({ description: 'Changed.' }) },
      },
      config: { refusals: ['invalid_request'] },
    },
    async (request, reply) => {
      const { oldPassword, newPassword } = request.body
      if (request.account === null) throw new Refusal('forbidden', 'Only a person with an account may do this.')
      const { id, name } = request.account
      const limits = [limitOfAccount(id)]
      const waitMs = await wrongPasswords.count(limits)
      if (waitMs > 0) throw refuseWrongKey(waitMs)
      const old = (await store.accounts.findForSignIn(name))?.passwordHash
      const isRight =
        old !== undefined && (await wrongPasswords.unlessFailed(limits, isPassword(oldPassword, old, true)))
      if (!isRight) throw wrongPassword()
      await wrongPasswords.uncount(limits)
      const hashes = { old, new: await hashPassword(newPassword, id) }
      const change = await store.accounts.changePassword(id, hashes, request.sessionId)
      if (change === 'wrong_password') throw wrongPassword()
      if (change === 'signed_out') throw new Refusal('invalid_admin_key')
      const isSecure = isHttps(request, settings.publicUrl ?? null)
      reply.header('set-cookie', deviceCookie({ name, hash: hashes.new }, settings.adminKey, isSecure))
      return reply.code(204).send(null)
    },
  )
}

function wrongPassword(): Refusal {
  return invalid('oldPassword', 'is not the password of your account')
}
