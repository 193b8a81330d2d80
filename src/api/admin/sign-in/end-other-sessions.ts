import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'

export function endOtherSessions(api: Api, { store }: ApiContext): void {
  api.delete(
    '/sessions',
    {
      schema: {
        operationId: 'endOtherSessions',
        summary: 'End all other sessions',
        description:
          "Ends every session of the caller's account except the caller's, at once, on every node. Without an account: every " +
          'session opened with the admin key or the password of the panel.',
        tags: ['Panel'],
        response: { 204: Type.Null({ description: 'Ended.' }) },
      },
    },
    async (request, reply) => {
      await store.sessions.endOthers(request.account?.id ?? null, request.sessionId || null)
      return reply.code(204).send(null)
    },
  )
}
