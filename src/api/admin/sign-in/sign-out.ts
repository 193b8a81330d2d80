import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { isHttps } from './cookies.ts'
import { sessionCookie } from './session-cookie.ts'

export function signOut(api: Api, { store, settings }: ApiContext): void {
  api.delete(
    '/session',
    {
      schema: {
        operationId: 'signOut',
        summary: 'Sign out of the panel',
        description: "Ends the caller's session at once, on every node.",
        tags: ['Panel'],
        response: { 204: Type.Null({ description: 'Ended.' }) },
      },
    },
    async (request, reply) => {
      if (request.sessionId) await store.sessions.end(request.sessionId, request.account?.id ?? null)
      reply.header('set-cookie', sessionCookie('', isHttps(request, settings.publicUrl ?? null)))
      return reply.code(204).send(null)
    },
  )
}
