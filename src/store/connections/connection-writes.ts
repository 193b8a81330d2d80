import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { fencedOneByOne, oneByOne } from '../engine/operation.ts'
import type { ConnectionsTable } from '../engine/schema/instances.ts'
import type { Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'
import { type ConnectionChange, columns, requestedGoal } from './connection-columns.ts'
import type { ConnectionReports } from './connection-reports.ts'

/** Settings of a connection other than its goal. The management API sets them. */
interface Setting {
  id: InstanceId
  values: Partial<Pick<ConnectionsTable, 'sealed_proxy' | 'rejects_calls' | 'call_text'>>
}

export interface GoalRequest {
  id: InstanceId
  goal: 'online' | 'logged_out'
  pairingPhone: string | null
  isConfirmed: boolean
}

/** The writes of a connection's goal, settings and state. */
export function connectionWrites(statements: Statements, reports: ConnectionReports) {
  const { db } = statements
  /** The instance of the row is not deleted. */
  const isLive = sql<boolean>`exists (
    select 1 from instances where instances.id = connections.instance_id and instances.deleted_at is null)`

  return {
    request: oneByOne(
      'connections.request',
      (input: GoalRequest) => input.id,
      async (tx, { id, goal, pairingPhone, isConfirmed }): Promise<boolean> => {
        const requested = await tx.query(
          db
            .updateTable('connections')
            .set(eb => ({
              goal: requestedGoal(goal),
              goal_version: eb('goal_version', '+', 1),
              pairing_phone: pairingPhone,
            }))
            .where('instance_id', '=', id)
            .where(isConfirmed ? sql<boolean>`true` : sql<boolean>`coalesce(cause, '') <> 'exported'`)
            .where(isLive)
            .returning('instance_id'),
        )
        return requested.length > 0
      },
    ),

    set: oneByOne(
      'connections.set',
      ({ id }: Setting) => id,
      async (tx, { id, values }): Promise<boolean> => {
        const changed = await tx.query(
          db
            .updateTable('connections')
            .set(values)
            .where('instance_id', '=', id)
            .where(isLive)
            .returning('instance_id'),
        )
        return changed.length > 0
      },
    ),

    record: fencedOneByOne(
      'connections.record',
      async (tx, { lease, change, now }: { lease: Lease; change: ConnectionChange; now: number }) => {
        const ofInstance = db.selectFrom('connections').where('instance_id', '=', lease.instanceId)
        const [before] = await tx.query(
          statements.locking(
            ofInstance.select(['state', 'goal', 'goal_version', 'phone', 'passkey', statements.now.as('now')]),
            'update',
            'connections',
          ),
        )
        if (before === undefined) return { recorded: false, deliverable: false }
        const state = change.state ?? before.state
        await tx.query(
          db
            .updateTable('connections')
            .set({
              ...columns(change, before),
              state,
              ...(state !== before.state && { since: now }),
              ...((state === 'connected' || before.state === 'connected') && { last_connected_at: before.now }),
              // A number that has just been linked was not connected yet, only its predecessor.
              ...(state === 'connecting' && { last_connected_at: null }),
            })
            .where('instance_id', '=', lease.instanceId),
        )
        // The step has ended, so nobody reads an answer to it any more.
        if (before.passkey !== null && change.passkey === null)
          await tx.query(db.deleteFrom('passkey_answers').where('instance_id', '=', lease.instanceId))
        // When a number is linked, all linking links of the instance end.
        if (before.phone === null && (change.phone ?? null) !== null) {
          await tx.query(
            db
              .updateTable('handouts')
              .set({ used_at: before.now })
              .where('instance_id', '=', lease.instanceId)
              .where('used_at', 'is', null),
          )
        }
        return reports.record(tx, lease.instanceId, now, before.phone)
      },
    ),

    report: fencedOneByOne('connections.report', (tx, { lease, now }: { lease: Lease; now: number }) =>
      reports.record(tx, lease.instanceId, now),
    ),
  }
}
