import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { nullable } from '../../resources/schema-kit.ts'
import { hashPassword, MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from './passwords/password.ts'

const bodySchema = Type.Object(
  {
    password: nullable(
      Type.String({
        minLength: MIN_PASSWORD_LENGTH,
        maxLength: MAX_PASSWORD_LENGTH,
        description: 'Null removes the password. The admin key always works.',
      }),
    ),
  },
  { title: 'PasswordOrNull' },
)

export function setPassword(api: Api, { store }: ApiContext): void {
  api.put(
    '/password',
    {
      schema: {
        operationId: 'setPassword',
        summary: "Set or remove the panel's password",
        description:
          "Ends every session without an account except the caller's. A password that an account set is removed when the account is " +
          'removed or is no longer an owner.',
        tags: ['Panel'],
        body: bodySchema,
        response: { 204: Type.Null({ description: 'Set, or removed.' }) },
      },
      config: { refusals: ['invalid_request'] },
    },
    async (request, reply) => {
      const { password } = request.body
      const hash = password === null ? null : await hashPassword(password, request.account?.id ?? request.sessionId)
      const change = await store.sessions.setPasswordHash(hash, request.sessionId || null, request.account?.id ?? null)
      if (change === 'not_owner') throw new Refusal('forbidden')
      if (change === 'signed_out') throw new Refusal('invalid_admin_key')
      return reply.code(204).send(null)
    },
  )
}
