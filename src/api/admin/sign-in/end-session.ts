import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { sessionParams } from '../../resources/people/session.ts'

export function endSession(api: Api, { store }: ApiContext): void {
  api.delete(
    '/sessions/:id',
    {
      schema: {
        operationId: 'endSession',
        summary: "End a session of the caller's account",
        description: 'Takes effect at once, on every node. Does nothing if the session has already ended.',
        tags: ['Panel'],
        params: sessionParams,
        response: { 204: Type.Null({ description: 'Ended.' }) },
      },
    },
    async (request, reply) => {
      await store.sessions.end(request.params.id, request.account?.id ?? null)
      return reply.code(204).send(null)
    },
  )
}
