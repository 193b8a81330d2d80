import { type RawBuilder, sql } from 'kysely'
import type { ConnectionGoal } from '../../domain/connection/connection.ts'
import type { Restriction } from '../../domain/connection/restriction.ts'
import type { ConnectionsTable } from '../engine/schema/instances.ts'
import type { Connections } from './connections.ts'

export type ConnectionChange = Parameters<Connections['record']>[1]

/** The goal that a request sets. If a logout is still to be carried out, a request to connect keeps it (`relinked`). */
export function requestedGoal(goal: 'online' | 'logged_out'): RawBuilder<ConnectionGoal> {
  if (goal === 'logged_out') return sql.lit(goal)
  return sql`case when goal in ('logged_out', 'relinked') then 'relinked' else 'online' end`
}

/**
 * The goal that the owner's change sets. After the logout (`idle`), `relinked` becomes `online`; until then it stays.
 */
function settledGoal(before: ConnectionGoal, settled: ConnectionGoal | undefined): ConnectionGoal | undefined {
  if (before !== 'relinked') return settled
  return settled === 'idle' ? 'online' : undefined
}

/** The columns that a change sets. */
export function columns(change: ConnectionChange, before: Pick<ConnectionsTable, 'goal' | 'goal_version'>) {
  const {
    reason,
    cause,
    goal,
    ifGoalVersion = before.goal_version,
    qr,
    qrExpiresAt,
    pairingCode,
    passkey,
    phone,
    retryAt,
  } = change
  // A goal that was requested later stays.
  const settled = ifGoalVersion < before.goal_version ? undefined : settledGoal(before.goal, goal)
  const all = {
    reason,
    cause,
    goal: settled,
    qr,
    phone,
    qr_expires_at: qrExpiresAt,
    pairing_code: pairingCode,
    passkey: passkey && JSON.stringify(passkey),
    retry_at: retryAt,
    ...restrictionColumns(change.restriction),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

function restrictionColumns(restriction: Restriction | null | undefined) {
  if (restriction === undefined) return {}
  return {
    restricted_since: restriction?.since ?? null,
    restricted_until: restriction?.until ?? null,
    restriction_told: restriction === null ? null : Number(restriction.reportedByWhatsapp),
  }
}

export function toRestriction(
  row: Pick<ConnectionsTable, 'restricted_since' | 'restricted_until' | 'restriction_told'>,
): Restriction | null {
  if (row.restricted_since === null) return null
  return { since: row.restricted_since, until: row.restricted_until!, reportedByWhatsapp: row.restriction_told === 1 }
}
