import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Account, Identity } from '../../../store/accounts/accounts.ts'
import type { AuditEntry } from '../../../store/audit/audit.ts'
import type { NewSession } from '../../../store/sessions/sessions.ts'
import type { ApiContext } from '../../context.ts'
import { SHOWN_OF_SESSION } from '../audit/record-changes.ts'
import { callerAddress } from './caller-address.ts'
import { isHttps } from './cookies.ts'
import { signInEntry } from './failed-sign-ins.ts'
import { deviceCookie } from './known-device.ts'
import { refuseWrongKey } from './require-admin.ts'
import { newSessionId, newSessionToken, SESSION_MS, sessionCookie, sessionDigest } from './session-cookie.ts'

const MAX_USER_AGENT_LENGTH = 300

export interface SignedIn {
  /** The account of the session. Null: none, because it was opened with the admin key or the panel's password. */
  account: Account | null
  /** The hash of the password that was checked. Null: the admin key or a login of the provider was. */
  passwordHash: string | null
  /** The login of the provider that was checked instead of a password. */
  identity?: Identity
}

/**
 * Creates a session, with its audit record, and sets its cookies.
 * @returns its ID
 * @throws Refusal if the password or login was changed since it was checked
 */
export async function startSession(
  { store, settings, now }: ApiContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { account, passwordHash, identity }: SignedIn,
): Promise<string> {
  const token = newSessionToken()
  const id = newSessionId()
  const createdAt = now()
  const method = identity ? 'oidc' : passwordHash === null ? 'admin_key' : 'password'
  const details = { session: id.slice(0, SHOWN_OF_SESSION), method }
  const entry: AuditEntry = {
    ...signInEntry(account?.id ?? 'panel', callerAddress(request), details),
    actorName: account?.name ?? null,
  }
  const session: NewSession = {
    id,
    tokenDigest: sessionDigest(token, settings.adminKey),
    createdAt,
    expiresAt: createdAt + SESSION_MS,
    userAgent: request.headers['user-agent']?.slice(0, MAX_USER_AGENT_LENGTH) ?? null,
    accountId: account?.id ?? null,
    passwordHash,
    identity: identity ?? null,
  }
  const created = await store.audit.during(entry, pending => {
    request.audit = pending
    return store.sessions.create(session)
  })
  if (!created) throw refuseWrongKey(0)
  const isSecure = isHttps(request, settings.publicUrl ?? null)
  reply.header('set-cookie', sessionCookie(token, isSecure))
  if (passwordHash !== null) {
    const password = { name: account?.name, hash: passwordHash }
    reply.header('set-cookie', deviceCookie(password, settings.adminKey, isSecure))
  }
  return id
}
