import type { FastifyRequest } from 'fastify'
import { Refusal } from '../domain/refusal.ts'
import { authorize } from './admin/access/authorize.ts'
import { checkSession } from './admin/sign-in/require-admin.ts'
import type { Api, ApiContext } from './context.ts'

/** A body that is sent together with its headers arrives within this time after the first check of access. */
const AT_ONCE_MS = 50

/**
 * Checks access again if the body took longer to arrive: it may have ended meanwhile. Other requests cost no query. Handlers that
 * read the body themselves, or wait for something else before they change anything, call `checkAgain`.
 */
export function checkAgainAfterBody(scope: Api, context: ApiContext): void {
  scope.addHook('preValidation', (request, _reply, done) => {
    if (performance.now() - request.checkedAt <= AT_ONCE_MS) done()
    else checkAgain(context, request).then(() => done(), done)
  })
}

/**
 * Checks that the caller's token, key or session is still valid, and that its account may still make this call. Does not count the call
 * against the rate limit.
 * @throws Refusal
 */
export async function checkAgain(context: ApiContext, request: FastifyRequest): Promise<void> {
  const { instanceId, key, sessionId } = request
  if (sessionId !== '') {
    await checkSession(context, request)
    authorize(request)
  } else if (instanceId !== '' && !(await context.store.admission.isValid(key?.digest ?? ''))) {
    throw new Refusal('invalid_token')
  }
}
