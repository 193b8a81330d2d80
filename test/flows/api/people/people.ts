import { randomBytes } from 'node:crypto'
import { newSessionId, newSessionToken, sessionDigest } from '../../../../src/api/admin/sign-in/session-cookie.ts'
import type { Role } from '../../../../src/domain/access.ts'
import { newAccountId } from '../../../../src/domain/ids.ts'
import { ADMIN_KEY, type ApiHarness } from '../harness.ts'

const HASH = 'scrypt$nobody can sign in with it'

/** An account with an open session, made in the store, because a password takes a tenth of a second. */
export async function createPerson(api: ApiHarness, role: Role, instances: string[] | null = null) {
  const { accounts } = api.store
  const digest = randomBytes(32)
  const id = newAccountId()
  await accounts.create(
    { id, name: `${role} ${id}`, role, instances },
    { digest, lastsMs: 60_000, invitedBy: null },
    Date.now(),
  )
  await accounts.accept(digest, HASH)
  return { id, name: `${role} ${id}`, ...(await startSession(api, id)) }
}

export async function startSession(api: ApiHarness, accountId: string) {
  const token = newSessionToken()
  const createdAt = Date.now()
  await api.store.sessions.create({
    id: newSessionId(),
    tokenDigest: sessionDigest(token, ADMIN_KEY),
    createdAt,
    expiresAt: createdAt + 60_000,
    userAgent: null,
    accountId,
    passwordHash: HASH,
  })
  return { headers: { cookie: `pombal_session=${token}`, origin: api.url } }
}
