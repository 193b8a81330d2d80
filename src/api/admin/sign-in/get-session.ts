import type { AccountAccess } from '../../../store/accounts/accounts.ts'
import type { Api, ApiContext } from '../../context.ts'
import { type SessionView, sessionSchema } from '../../resources/people/session.ts'
import { dataOf } from '../../resources/schema-kit.ts'

/** @param id null for a caller with the admin key */
export async function findSessionView(
  { store, sandbox, version }: ApiContext,
  id: string | null,
  account: (AccountAccess & { id: string; name: string }) | null,
): Promise<SessionView> {
  const passwordSet = (await store.sessions.findPasswordHash()) !== null
  const shown = account && {
    id: account.id,
    name: account.name,
    role: account.role,
    instances: account.instances === null ? null : [...account.instances],
    hasPassword: (await store.accounts.findForSignIn(account.name)) !== null,
  }
  return { id, account: shown, passwordSet, sandbox: sandbox.enabled, version }
}

export function getSession(api: Api, context: ApiContext): void {
  api.get(
    '/session',
    {
      schema: {
        operationId: 'getSession',
        summary: "Read the caller's session, and the features of this installation",
        tags: ['Panel'],
        response: { 200: dataOf(sessionSchema, "The caller's session.") },
      },
    },
    async request => ({ data: await findSessionView(context, request.sessionId || null, request.account) }),
  )
}
