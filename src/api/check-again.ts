import type { FastifyRequest } from 'fastify'
import { Refusal } from '../domain/refusal.ts'
import { authorize } from './admin/access/authorize.ts'
import { checkSession } from './admin/sign-in/require-admin.ts'
import type { ApiContext } from './context.ts'

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
