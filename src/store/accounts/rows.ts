import type { ExpressionBuilder } from 'kysely'
import type { AccountsTable } from '../engine/schema/accounts.ts'
import type { Database } from '../engine/schema/database.ts'
import type { Account } from './accounts.ts'

/** A number or a boolean, depending on the database. */
interface HasIdentity {
  has_identity: unknown
}

/** Selects whether an identity is bound to the account of the row. */
export function hasIdentity(eb: ExpressionBuilder<Database, 'accounts'>) {
  const bound = eb.selectFrom('account_identities').select('subject').whereRef('account_id', '=', 'accounts.id')
  return eb.exists(bound).as('has_identity')
}

export function isActive(row: Pick<AccountRow, 'password_hash' | 'has_identity'>): boolean {
  return row.password_hash !== null || Boolean(row.has_identity)
}

export function parseInstances(stored: string | null): string[] | null {
  return stored === null ? null : stored.split(' ').filter(id => id !== '')
}

export type AccountRow = AccountsTable & HasIdentity

export function toAccount(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    instances: parseInstances(row.instances),
    createdAt: row.created_at,
    isActive: isActive(row),
    hasIdentity: Boolean(row.has_identity),
    invitationEndsAt: row.invitation_ends_at,
  }
}
