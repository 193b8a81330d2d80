import { sql } from 'kysely'
import type { Transaction } from '../engine/backend.ts'
import type { AccountsTable } from '../engine/schema/accounts.ts'
import type { Statements } from '../engine/statement.ts'
import type { Invitation } from './accounts.ts'

export const NO_INVITATION = {
  invitation_digest: null,
  invitation_ends_at: null,
  invited_by: null,
} satisfies Partial<AccountsTable>

export function invitationOf({ digest, lastsMs, invitedBy }: Invitation, { now }: Statements) {
  return { invitation_digest: digest, invitation_ends_at: sql<number>`${now} + ${lastsMs}`, invited_by: invitedBy }
}

/** Ends the open invitations that a former owner may know: its own, and those without a known creator. */
export async function endInvitationsOf(tx: Transaction, { db }: Statements, ownerId: string): Promise<void> {
  await tx.query(
    db
      .updateTable('accounts')
      .set(NO_INVITATION)
      .where('invitation_digest', 'is not', null)
      .where(eb => eb.or([eb('invited_by', '=', ownerId), eb('invited_by', 'is', null)])),
  )
}
