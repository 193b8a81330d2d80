import type { SelectQueryBuilder } from 'kysely'
import { accountNameKey, MAX_ACCOUNTS } from '../../domain/access.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { AccountsTable } from '../engine/schema/accounts.ts'
import type { Database } from '../engine/schema/database.ts'
import { clearPanelPasswordOf } from '../sessions/panel-password.ts'
import type {
  Account,
  AccountAccess,
  AccountChange,
  Accounts,
  Binding,
  Identity,
  Invitation,
  PasswordChange,
} from './accounts.ts'
import { identityOperations } from './identities.ts'
import { endInvitationsOf, invitationOf, NO_INVITATION } from './invitations.ts'
import { type AccountRow, hasIdentity, isActive, toAccount } from './rows.ts'

export class StoredAccounts implements Accounts {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = { ...operations(core), ...identityOperations(core) }
  }

  create(account: Pick<Account, 'id' | 'name'> & AccountAccess, invitation: Invitation, now: number) {
    return this.#core.write(this.#operations.create, { account, invitation, now })
  }

  async list(): Promise<Account[]> {
    const rows = await this.#core.reader.query(this.#select.orderBy('name_key'))
    return rows.map(toAccount)
  }

  change(id: string, access: AccountAccess): Promise<AccountChange> {
    return this.#core.write(this.#operations.change, { id, access })
  }

  remove(id: string): Promise<AccountChange> {
    return this.#core.write(this.#operations.change, { id, access: null })
  }

  invite(id: string, invitation: Invitation): Promise<Account | 'not_owner' | null> {
    return this.#core.write(this.#operations.invite, { id, invitation })
  }

  async findInvited(digest: Uint8Array): Promise<Account | null> {
    const { now } = this.#core.statements
    return this.#find(this.#select.where('invitation_digest', '=', digest).where('invitation_ends_at', '>', now))
  }

  accept(digest: Uint8Array, passwordHash: string): Promise<Account | null> {
    return this.#core.write(this.#operations.accept, { digest, passwordHash })
  }

  acceptWith(digest: Uint8Array, identity: Identity, now: number): Promise<Account | 'taken' | null> {
    return this.#core.write(this.#operations.acceptWith, { digest, identity, now })
  }

  findByIdentity({ issuer, subject }: Identity): Promise<Account | null> {
    const bound = this.#core.statements.db
      .selectFrom('account_identities')
      .select('account_id')
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
    return this.#find(this.#select.where('id', 'in', bound))
  }

  findByName(name: string): Promise<Account | null> {
    return this.#find(this.#select.where('name_key', '=', accountNameKey(name)))
  }

  bind(accountId: string, identity: Identity, now: number): Promise<Binding> {
    return this.#core.write(this.#operations.bind, { accountId, identity, now })
  }

  changePassword(id: string, hashes: { old: string; new: string }, keptId: string): Promise<PasswordChange> {
    return this.#core.write(this.#operations.changePassword, { id, hashes, keptId })
  }

  async findForSignIn(name: string): Promise<{ account: Account; passwordHash: string } | null> {
    const [row] = await this.#core.reader.query(this.#select.where('name_key', '=', accountNameKey(name)))
    if (row === undefined || row.password_hash === null) return null
    return { account: toAccount(row), passwordHash: row.password_hash }
  }

  get #select() {
    return this.#core.statements.db.selectFrom('accounts').selectAll().select(hasIdentity)
  }

  async #find(query: SelectQueryBuilder<Database, 'accounts', AccountRow>): Promise<Account | null> {
    const [row] = await this.#core.reader.query(query)
    return row === undefined ? null : toAccount(row)
  }
}

function operations({ statements }: Core) {
  const { db, now: clock } = statements
  const noInstance = () => ''

  /** With this lock, two owners cannot remove each other at the same time, and no link is created by an owner who is being removed. */
  async function lockOwners(tx: Transaction) {
    const query = db
      .selectFrom('accounts')
      .select(['id', 'password_hash', hasIdentity])
      .where('role', '=', 'owner')
      .orderBy('id')
    return tx.query(statements.locking(query, 'update', 'accounts'))
  }

  async function mayInvite(tx: Transaction, { invitedBy }: Invitation): Promise<boolean> {
    return invitedBy === null || (await lockOwners(tx)).some(({ id }) => id === invitedBy)
  }

  return {
    create: oneByOne(
      'accounts.create',
      noInstance,
      async (
        tx,
        input: { account: Pick<Account, 'id' | 'name'> & AccountAccess; invitation: Invitation; now: number },
      ): Promise<Account | 'exists' | 'full' | 'not_owner'> => {
        const { account, invitation, now } = input
        if (!(await mayInvite(tx, invitation))) return 'not_owner'
        const known = await tx.query(db.selectFrom('accounts').select('id').limit(MAX_ACCOUNTS))
        if (known.length >= MAX_ACCOUNTS) return 'full'
        const [row] = await tx.query(
          db
            .insertInto('accounts')
            .values({
              id: account.id,
              name: account.name,
              name_key: accountNameKey(account.name),
              ...accessOf(account),
              ...invitationOf(invitation, statements),
              created_at: now,
            })
            .onConflict(oc => oc.column('name_key').doNothing())
            .returningAll()
            .returning(hasIdentity),
        )
        return row === undefined ? 'exists' : toAccount(row)
      },
      outcome => typeof outcome === 'object',
    ),

    /** Null access removes the account. */
    change: oneByOne(
      'accounts.change',
      noInstance,
      async (tx, { id, access }: { id: string; access: AccountAccess | null }): Promise<AccountChange> => {
        const owners = await lockOwners(tx)
        const isNoLongerOwner = access?.role !== 'owner' && owners.some(owner => owner.id === id)
        const active = owners.filter(isActive)
        if (isNoLongerOwner && active.length === 1 && active[0]!.id === id) return { kind: 'last_owner' }
        if (access === null) await tx.query(db.deleteFrom('account_sessions').where('account_id', '=', id))
        const [row] =
          access === null
            ? await tx.query(db.deleteFrom('accounts').where('id', '=', id).returningAll().returning(hasIdentity))
            : await tx.query(
                db
                  .updateTable('accounts')
                  .set(accessOf(access))
                  .where('id', '=', id)
                  .returningAll()
                  .returning(hasIdentity),
              )
        if (row === undefined) return { kind: 'no_account' }
        if (access?.role !== 'owner') await clearPanelPasswordOf(tx, statements, id)
        // An owner who never signed in knows no link.
        if (isNoLongerOwner && active.some(owner => owner.id === id)) await endInvitationsOf(tx, statements, id)
        return { kind: 'changed', account: toAccount(row) }
      },
      ({ kind }) => kind === 'changed',
    ),

    invite: oneByOne(
      'accounts.invite',
      noInstance,
      async (tx, { id, invitation }: { id: string; invitation: Invitation }): Promise<Account | 'not_owner' | null> => {
        if (!(await mayInvite(tx, invitation))) return 'not_owner'
        const update = db.updateTable('accounts').set(invitationOf(invitation, statements)).where('id', '=', id)
        const [row] = await tx.query(update.returningAll().returning(hasIdentity))
        return row === undefined ? null : toAccount(row)
      },
      outcome => typeof outcome === 'object' && outcome !== null,
    ),

    accept: oneByOne(
      'accounts.accept',
      noInstance,
      async (tx, { digest, passwordHash }: { digest: Uint8Array; passwordHash: string }): Promise<Account | null> => {
        const [row] = await tx.query(
          db
            .updateTable('accounts')
            .set({ password_hash: passwordHash, ...NO_INVITATION })
            .where('invitation_digest', '=', digest)
            .where('invitation_ends_at', '>', clock)
            .returningAll(),
        )
        if (row === undefined) return null
        await tx.query(db.deleteFrom('account_identities').where('account_id', '=', row.id))
        await tx.query(db.deleteFrom('account_sessions').where('account_id', '=', row.id))
        return toAccount({ ...row, has_identity: false })
      },
    ),

    changePassword: oneByOne(
      'accounts.changePassword',
      noInstance,
      async (
        tx,
        input: { id: string; hashes: { old: string; new: string }; keptId: string },
      ): Promise<PasswordChange> => {
        const { id, hashes, keptId } = input
        const account = db
          .selectFrom('accounts')
          .select('id')
          .where('id', '=', id)
          .where('password_hash', '=', hashes.old)
        if ((await tx.query(statements.locking(account, 'update', 'accounts'))).length === 0) return 'wrong_password'
        // The lock waits for a call that is ending the session.
        const kept = db
          .selectFrom('account_sessions')
          .select('id')
          .where('id', '=', keptId)
          .where('account_id', '=', id)
        if ((await tx.query(statements.locking(kept, 'share', 'account_sessions'))).length === 0) return 'signed_out'
        const set = { password_hash: hashes.new, ...NO_INVITATION }
        await tx.query(db.updateTable('accounts').set(set).where('id', '=', id))
        await tx.query(db.deleteFrom('account_sessions').where('account_id', '=', id).where('id', '!=', keptId))
        return 'changed'
      },
      outcome => outcome === 'changed',
    ),
  }
}

function accessOf({ role, instances }: AccountAccess): Pick<AccountsTable, 'role' | 'instances'> {
  return { role, instances: role === 'owner' || instances === null ? null : instances.join(' ') }
}
