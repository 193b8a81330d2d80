import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { Account, Binding, Identity } from './accounts.ts'
import { NO_INVITATION } from './invitations.ts'
import { hasIdentity, isActive, toAccount } from './rows.ts'

/** The writes that bind an identity to an account. */
export function identityOperations({ statements }: Core) {
  const { db, now: clock } = statements
  const noInstance = () => ''

  /** False if the identity is bound to another account. Waits for a transaction that is binding it. */
  async function insert(tx: Transaction, accountId: string, { issuer, subject }: Identity, now: number) {
    const row = { issuer, subject, account_id: accountId, created_at: now }
    const [inserted] = await tx.query(
      db
        .insertInto('account_identities')
        .values(row)
        .onConflict(oc => oc.columns(['issuer', 'subject']).doNothing())
        .returning('subject'),
    )
    if (inserted !== undefined) return true
    const bound = db
      .selectFrom('account_identities')
      .select('account_id')
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
    const [found] = await tx.query(bound)
    return found?.account_id === accountId
  }

  return {
    bind: oneByOne(
      'accounts.bind',
      noInstance,
      async (
        tx,
        { accountId, identity, now }: { accountId: string; identity: Identity; now: number },
      ): Promise<Binding> => {
        const query = db.selectFrom('accounts').select(['id', 'password_hash', hasIdentity]).where('id', '=', accountId)
        const [account] = await tx.query(statements.locking(query, 'update', 'accounts'))
        if (account === undefined) return 'no_account'
        const others = db
          .selectFrom('account_identities')
          .select('subject')
          .where('account_id', '=', accountId)
          .where('issuer', '=', identity.issuer)
          .where('subject', '!=', identity.subject)
        if (account.password_hash !== null || (await tx.query(others)).length > 0) return 'other_login'
        if (!(await insert(tx, accountId, identity, now))) return 'taken'
        if (isActive(account)) return 'bound'
        await tx.query(db.updateTable('accounts').set(NO_INVITATION).where('id', '=', accountId))
        return 'bound'
      },
      outcome => outcome === 'bound',
    ),

    acceptWith: oneByOne(
      'accounts.acceptWith',
      noInstance,
      async (
        tx,
        { digest, identity, now }: { digest: Uint8Array; identity: Identity; now: number },
      ): Promise<Account | 'taken' | null> => {
        const invited = db
          .selectFrom('accounts')
          .select('id')
          .where('invitation_digest', '=', digest)
          .where('invitation_ends_at', '>', clock)
        const [found] = await tx.query(statements.locking(invited, 'update', 'accounts'))
        if (found === undefined) return null
        const { id } = found
        if (!(await insert(tx, id, identity, now))) return 'taken'
        await tx.query(
          db
            .deleteFrom('account_identities')
            .where('account_id', '=', id)
            .where(eb => eb.or([eb('issuer', '!=', identity.issuer), eb('subject', '!=', identity.subject)])),
        )
        await tx.query(db.deleteFrom('account_sessions').where('account_id', '=', id))
        const [row] = await tx.query(
          db
            .updateTable('accounts')
            .set({ password_hash: null, ...NO_INVITATION })
            .where('id', '=', id)
            .returningAll()
            .returning(hasIdentity),
        )
        return toAccount(row!)
      },
      outcome => typeof outcome === 'object' && outcome !== null,
    ),
  }
}
