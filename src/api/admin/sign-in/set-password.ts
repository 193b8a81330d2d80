import { Type } from 'typebox'
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
        description: "Ends every session except the caller's.",
        tags: ['Panel'],
        body: bodySchema,
        response: { 204: Type.Null({ description: 'Set, or removed.' }) },
      },
      config: { refusals: ['invalid_request'] },
    },
    async (request, reply) => {
      const { password } = request.body
      const hash = password === null ? null : await hashPassword(password)
      await store.sessions.setPasswordHash(hash, request.sessionId || null)
      return reply.code(204).send(null)
    },
  )
}
