import type { Restriction } from '../../domain/connection/restriction.ts'
import type { ConnectionsTable } from '../engine/schema/instances.ts'
import type { Connections } from './connections.ts'

export type ConnectionChange = Parameters<Connections['record']>[1]

/** The columns that a change sets. */
export function columns(change: ConnectionChange, goalVersion: number) {
  const {
    reason,
    cause,
    goal,
    ifGoalVersion = goalVersion,
    qr,
    qrExpiresAt,
    pairingCode,
    passkey,
    phone,
    retryAt,
  } = change
  // A goal that was requested later stays.
  const settled = ifGoalVersion < goalVersion ? undefined : goal
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
