import { sql } from 'kysely'
import type { Role } from '../../domain/access.ts'
import type { Identity } from '../accounts/accounts.ts'
import { parseInstances } from '../accounts/rows.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import { clearPanelPassword, PASSWORD_KEY, PASSWORD_SETTER_KEY } from './panel-password.ts'
import type {
  NewSession,
  PanelPasswordChange,
  PanelSession,
  Sessions,
  WrongKeyCount,
  WrongKeyWindow,
} from './sessions.ts'

/** Sessions of one account, or of all people without an account. */
const MAX_SESSIONS = 100
/** A window that ends this much later than a new one would was opened before the clock was set back. */
const CLOCK_STEP_MS = 10_000

/** The panel's sessions and its password. They belong to no instance. */
export class StoredSessions implements Sessions {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core)
  }

  create(session: NewSession): Promise<boolean> {
    return this.#core.write(this.#operations.create, session)
  }

  async find(tokenDigest: Uint8Array, now: number): Promise<PanelSession | null> {
    const found = this.#withoutAccount(now)
      .where('token_digest', '=', tokenDigest)
      .unionAll(this.#ofAccounts(now).where('token_digest', '=', tokenDigest))
    const [row] = await this.#core.reader.query(found)
    return row === undefined ? null : toSession(row)
  }

  async list(accountId: string | null, now: number): Promise<PanelSession[]> {
    await this.#core.write(this.#operations.eraseExpired, { now })
    const listed =
      accountId === null ? this.#withoutAccount(now) : this.#ofAccounts(now).where('accounts.id', '=', accountId)
    const rows = await this.#core.reader.query(listed)
    return rows.map(toSession).sort((a, b) => b.createdAt - a.createdAt)
  }

  end(id: string, accountId: string | null): Promise<boolean> {
    return this.#core.write(this.#operations.end, { id, accountId })
  }

  endOthers(accountId: string | null, keptId: string | null): Promise<boolean> {
    return this.#core.write(this.#operations.endOthers, { accountId, keptId })
  }

  #withoutAccount(now: number) {
    const none = sql<string | null>`null`
    return this.#core.statements.db
      .selectFrom('panel_sessions')
      .select(['panel_sessions.id', 'panel_sessions.created_at', 'expires_at', 'user_agent'])
      .select([none.as('account_id'), none.as('name'), sql<Role | null>`null`.as('role'), none.as('instances')])
      .where('expires_at', '>', now)
  }

  #ofAccounts(now: number) {
    return this.#core.statements.db
      .selectFrom('account_sessions')
      .innerJoin('accounts', 'accounts.id', 'account_sessions.account_id')
      .select(['account_sessions.id', 'account_sessions.created_at', 'expires_at', 'user_agent'])
      .select(['accounts.id as account_id', 'accounts.name', 'accounts.role', 'accounts.instances'])
      .where('expires_at', '>', now)
  }

  findPasswordHash(): Promise<string | null> {
    return this.#findMeta(PASSWORD_KEY)
  }

  findPasswordSetter(): Promise<string | null> {
    return this.#findMeta(PASSWORD_SETTER_KEY)
  }

  async #findMeta(key: string): Promise<string | null> {
    const { db } = this.#core.statements
    const [row] = await this.#core.reader.query(db.selectFrom('meta').select('value').where('key', '=', key))
    return row === undefined ? null : Buffer.from(row.value).toString()
  }

  countWrongKey(windows: readonly WrongKeyWindow[]): Promise<WrongKeyCount[]> {
    return this.#core.write(this.#operations.countWrongKey, { windows })
  }

  uncountWrongKey(windows: readonly WrongKeyWindow[]): Promise<void> {
    return this.#core.write(this.#operations.uncountWrongKey, { windows })
  }

  setPasswordHash(
    hash: string | null,
    keptId: string | null,
    setBy: string | null = null,
  ): Promise<PanelPasswordChange> {
    return this.#core.write(this.#operations.setPassword, { hash, keptId, setBy })
  }
}

function operations({ statements }: Core) {
  const { db, now: clock } = statements
  const noInstance = () => ''

  /** False if it is not the password any more. The lock waits for a change of the password, or a removal of the account. */
  async function lockPassword(tx: Transaction, accountId: string | null, passwordHash: string): Promise<boolean> {
    if (accountId === null) {
      const query = db.selectFrom('meta').select('value').where('key', '=', PASSWORD_KEY)
      const [found] = await tx.query(statements.locking(query, 'share', 'meta'))
      return found !== undefined && Buffer.from(found.value).toString() === passwordHash
    }
    const query = db
      .selectFrom('accounts')
      .select('id')
      .where('id', '=', accountId)
      .where('password_hash', '=', passwordHash)
    return (await tx.query(statements.locking(query, 'share', 'accounts'))).length > 0
  }

  /** False if it is not bound to the account any more. The lock waits for a call that replaces it, or removes the account. */
  async function lockIdentity(tx: Transaction, accountId: string, { issuer, subject }: Identity): Promise<boolean> {
    const account = db.selectFrom('accounts').select('id').where('id', '=', accountId)
    await tx.query(statements.locking(account, 'share', 'accounts'))
    const bound = db
      .selectFrom('account_identities')
      .select('account_id')
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .where('account_id', '=', accountId)
    return (await tx.query(bound)).length > 0
  }

  /** False if the session of an account, or (null) without one, has ended. The lock waits for a call that is ending it. */
  async function lockSession(tx: Transaction, id: string, accountId: string | null): Promise<boolean> {
    const table = accountId === null ? 'panel_sessions' : 'account_sessions'
    const session = db.selectFrom(table).select('id').where('id', '=', id)
    return (await tx.query(statements.locking(session, 'share', table))).length > 0
  }

  /** Deletes the sessions of an account, or (null) those without one. */
  function deleteOf(accountId: string | null) {
    return accountId === null
      ? db.deleteFrom('panel_sessions')
      : db.deleteFrom('account_sessions').where('account_id', '=', accountId)
  }

  /** Ends the oldest sessions of an account, or (null) of those without one, if there is no place for another one. */
  async function endOldest(tx: Transaction, accountId: string | null): Promise<void> {
    const surplus = await tx.query(
      db
        .selectFrom(accountId === null ? 'panel_sessions' : 'account_sessions')
        .select('id')
        .where(accountId === null ? sql<boolean>`true` : sql<boolean>`account_id = ${accountId}`)
        .orderBy('created_at', 'desc')
        .limit(2 * MAX_SESSIONS)
        .offset(MAX_SESSIONS - 1),
    )
    for (const { id } of surplus) await tx.query(deleteOf(accountId).where('id', '=', id))
  }

  return {
    create: oneByOne('sessions.create', noInstance, async (tx, session: NewSession): Promise<boolean> => {
      const { id, accountId, passwordHash, identity, tokenDigest, createdAt, expiresAt, userAgent } = session
      const row = {
        id,
        token_digest: tokenDigest,
        created_at: createdAt,
        expires_at: expiresAt,
        user_agent: userAgent,
      }
      const isWithAdminKey = accountId === null && passwordHash === null
      const isValid =
        isWithAdminKey ||
        (accountId !== null && identity
          ? await lockIdentity(tx, accountId, identity)
          : await lockPassword(tx, accountId, passwordHash ?? ''))
      if (!isValid) return false
      await endOldest(tx, accountId)
      if (accountId === null) await tx.query(db.insertInto('panel_sessions').values(row))
      else await tx.query(db.insertInto('account_sessions').values({ ...row, account_id: accountId }))
      return true
    }),

    eraseExpired: oneByOne('sessions.eraseExpired', noInstance, async (tx, { now }: { now: number }) => {
      await tx.query(db.deleteFrom('panel_sessions').where('expires_at', '<=', now))
      await tx.query(db.deleteFrom('account_sessions').where('expires_at', '<=', now))
    }),

    end: oneByOne('sessions.end', noInstance, async (tx, input: { id: string; accountId: string | null }) => {
      const ended = await tx.query(deleteOf(input.accountId).where('id', '=', input.id).returning('id'))
      return ended.length > 0
    }),

    endOthers: oneByOne(
      'sessions.endOthers',
      noInstance,
      async (tx, { accountId, keptId }: { accountId: string | null; keptId: string | null }) => {
        const ended = await tx.query(
          deleteOf(accountId)
            .where('id', '!=', keptId ?? '')
            .returning('id'),
        )
        return ended.length > 0
      },
    ),

    countWrongKey: oneByOne(
      'sessions.countWrongKey',
      noInstance,
      async (tx, { windows }: WrongKeyWindows) => {
        await tx.query(db.deleteFrom('wrong_keys').where('ends_at', '<=', clock))
        const counts: WrongKeyCount[] = []
        for (const { key, windowMs } of windows) {
          const isFromLater = sql<boolean>`ends_at > ${clock} + ${sql.lit(windowMs + CLOCK_STEP_MS)}`
          await tx.query(db.deleteFrom('wrong_keys').where('address', '=', key).where(isFromLater))
          const [row] = await tx.query(
            db
              .insertInto('wrong_keys')
              .values({ address: key, ends_at: sql`${clock} + ${sql.lit(windowMs)}`, count: 1 })
              .onConflict(oc => oc.column('address').doUpdateSet(eb => ({ count: eb('wrong_keys.count', '+', 1) })))
              .returning(['count', 'ends_at', clock.as('now')]),
          )
          counts.push({ count: row!.count, endsInMs: Math.min(windowMs, Math.max(0, row!.ends_at - row!.now)) })
        }
        return counts
      },
      false,
    ),

    uncountWrongKey: oneByOne(
      'sessions.uncountWrongKey',
      noInstance,
      async (tx, { windows }: WrongKeyWindows) => {
        for (const { key } of windows) {
          const counted = db.updateTable('wrong_keys').where('address', '=', key).where('count', '>', 0)
          await tx.query(counted.set(eb => ({ count: eb('count', '-', 1) })))
          // Only a wrong key begins a window.
          await tx.query(db.deleteFrom('wrong_keys').where('address', '=', key).where('count', '<=', 0))
        }
      },
      false,
    ),

    setPassword: oneByOne(
      'sessions.setPassword',
      noInstance,
      async (tx, { hash, keptId, setBy }: NewPanelPassword): Promise<PanelPasswordChange> => {
        if (setBy !== null) {
          // The lock waits for a removal of the account, which would not see the new password.
          const owner = db.selectFrom('accounts').select('id').where('id', '=', setBy).where('role', '=', 'owner')
          const found = await tx.query(statements.locking(owner, 'share', 'accounts'))
          if (found.length === 0) return 'not_owner'
        }
        if (keptId !== null && !(await lockSession(tx, keptId, setBy))) return 'signed_out'
        await clearPanelPassword(tx, statements)
        const rows = [
          { key: PASSWORD_KEY, value: hash },
          { key: PASSWORD_SETTER_KEY, value: hash && setBy },
        ]
        for (const { key, value } of rows) {
          if (value !== null) await tx.query(db.insertInto('meta').values({ key, value: Buffer.from(value) }))
        }
        await tx.query(db.deleteFrom('panel_sessions').where('id', '!=', keptId ?? ''))
        return 'changed'
      },
      outcome => outcome === 'changed',
    ),
  }
}

interface NewPanelPassword {
  hash: string | null
  keptId: string | null
  setBy: string | null
}

interface WrongKeyWindows {
  windows: readonly WrongKeyWindow[]
}

interface SessionRow {
  id: string
  created_at: number
  expires_at: number
  user_agent: string | null
  account_id: string | null
  name: string | null
  role: Role | null
  instances: string | null
}

function toSession(row: SessionRow): PanelSession {
  const { account_id: accountId, name, role } = row
  const account =
    accountId === null || name === null || role === null
      ? null
      : { id: accountId, name, role, instances: parseInstances(row.instances) }
  return { id: row.id, createdAt: row.created_at, expiresAt: row.expires_at, userAgent: row.user_agent, account }
}
