import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { pageOf } from '../../resources/page.ts'
import { listedSessionSchema, listedSessionView, sessionParams } from '../../resources/people/session.ts'

export function listSessions(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/sessions',
    {
      schema: {
        operationId: 'listSessions',
        summary: "List the sessions of the caller's account",
        description: 'Without an account: those that were opened with the admin key or the password of the panel.',
        tags: ['Panel'],
        response: { 200: pageOf(listedSessionSchema, 'Every session, newest first.') },
      },
    },
    async request => {
      const sessions = await store.sessions.list(request.account?.id ?? null, now())
      return { data: sessions.map(session => listedSessionView(session, request.sessionId)), nextCursor: null }
    },
  )
}

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
