import type { Api, ApiContext } from '../../context.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { type SessionView, sessionSchema } from '../../resources/session.ts'

/** @param id null: the admin key itself */
export async function findSessionView(
  { store, sandbox, version }: ApiContext,
  id: string | null,
): Promise<SessionView> {
  const passwordSet = (await store.sessions.findPasswordHash()) !== null
  return { id, passwordSet, sandbox: sandbox.enabled, version }
}

export function getSession(api: Api, context: ApiContext): void {
  api.get(
    '/session',
    {
      schema: {
        operationId: 'getSession',
        summary: 'Read who is signed in, and what this installation offers',
        tags: ['Panel'],
        response: { 200: dataOf(sessionSchema, 'The session that asks.') },
      },
    },
    async request => ({ data: await findSessionView(context, request.sessionId || null) }),
  )
}
