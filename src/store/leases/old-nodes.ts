import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'

/**
 * Whether a node is running whose version does not know `feature`. A node that is stopping may still own leases. An older
 * version deletes its row in `nodes` before it releases them; this version keeps the row until then (`Leases.leave`). So an
 * owner without a row counts as old.
 */
export async function hasOldNodes(
  { db, dialect, now }: Statements,
  tx: Transaction,
  feature: 'endpoints' | 'media' | 'conversations' | 'urls' | 'operator_endpoints',
): Promise<boolean> {
  if (!dialect.isShared) return false
  const registered = db.selectFrom('nodes').select('id').where(feature, '=', 0).where('seen_until', '>', now)
  const newNodes = db.selectFrom('nodes').select('id').where(feature, '=', 1)
  const owning = db
    .selectFrom('leases')
    .select('owner')
    .where('lease_until', '>', now)
    .where('owner', 'is not', null)
    .where('owner', 'not in', newNodes)
  return (await tx.query(registered.limit(1))).length > 0 || (await tx.query(owning.limit(1))).length > 0
}
