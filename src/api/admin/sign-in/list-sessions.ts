import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { listedSessionSchema, listedSessionView } from '../../resources/people/session.ts'
import { dataOf } from '../../resources/schema-kit.ts'

export function listSessions(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/sessions',
    {
      schema: {
        operationId: 'listSessions',
        summary: "List the sessions of the caller's account",
        description: 'Without an account: those that were opened with the admin key or the password of the panel.',
        tags: ['Panel'],
        response: { 200: dataOf(Type.Array(listedSessionSchema), 'Every session, newest first.') },
      },
    },
    async request => {
      const sessions = await store.sessions.list(request.account?.id ?? null, now())
      return { data: sessions.map(session => listedSessionView(session, request.sessionId)) }
    },
  )
}
