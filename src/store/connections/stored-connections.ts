import { sql } from 'kysely'
import type { Restriction } from '../../domain/connection/restriction.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipients/recipient.ts'
import { proxyPlace } from '../encryption/sealing.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne, oneByOne } from '../engine/operation.ts'
import type { ConnectionsTable } from '../engine/schema/instances.ts'
import type { EventRecorder } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import { StoredHealth } from './connection-health.ts'
import { ConnectionReports, type ReportOutcome } from './connection-reports.ts'
import type { ConnectionHealth, ConnectionRecord, Connections, HealthReport } from './connections.ts'

type Change = Parameters<Connections['record']>[1]

interface GoalRequest {
  id: InstanceId
  goal: 'online' | 'logged_out'
  pairingPhone: string | null
  isConfirmed: boolean
}

export class StoredConnections implements Connections {
  readonly #core: Core
  readonly #operations
  readonly #health: StoredHealth

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#operations = operations(core, new ConnectionReports(core.statements, recorder))
    this.#health = new StoredHealth(core)
  }

  async find(id: InstanceId): Promise<ConnectionRecord | null> {
    const { db } = this.#core.statements
    const [row] = await this.#core.reader.query(
      db
        .selectFrom('connections')
        .innerJoin('instances', 'instances.id', 'connections.instance_id')
        .selectAll('connections')
        .select(['instances.kind', 'instances.deleted_at'])
        .where('connections.instance_id', '=', id),
    )
    if (row === undefined) return null
    return {
      instanceId: row.instance_id,
      kind: row.kind,
      deleted: row.deleted_at !== null,
      state: row.state,
      reason: row.reason,
      cause: row.cause,
      since: row.since,
      goal: row.goal,
      goalVersion: row.goal_version,
      pairingPhone: row.pairing_phone,
      qr: row.qr,
      qrExpiresAt: row.qr_expires_at,
      pairingCode: row.pairing_code,
      phone: row.phone,
      lastConnectedAt: row.last_connected_at,
      retryAt: row.retry_at,
      restriction: toRestriction(row),
      proxy: row.sealed_proxy && toText(this.#core.sealing.open(id, proxyPlace(id), row.sealed_proxy)),
    }
  }

  requestConnect(id: InstanceId, pairingPhone: PhoneNumber | null, isConfirmed = false): Promise<boolean> {
    return this.#request({ id, goal: 'online', pairingPhone, isConfirmed })
  }

  requestLogout(id: InstanceId): Promise<boolean> {
    return this.#request({ id, goal: 'logged_out', pairingPhone: null, isConfirmed: true })
  }

  async setProxy(id: InstanceId, proxy: string | null): Promise<boolean> {
    const sealed = proxy === null ? null : this.#core.sealing.seal(id, proxyPlace(id), Buffer.from(proxy))
    const isSet = await this.#core.write(this.#operations.setProxy, { id, sealed })
    if (isSet) {
      this.#core.hints.publish('goal', id)
      this.#core.hints.publish('connection', id)
    }
    return isSet
  }

  async record(lease: Lease, change: Change, now: number): Promise<void> {
    this.#announce(lease, await this.#core.write(this.#operations.record, { lease, change, now }))
    this.#core.hints.publish('connection', lease.instanceId)
  }

  async report(lease: Lease, now: number): Promise<boolean> {
    const outcome = await this.#core.write(this.#operations.report, { lease, now })
    this.#announce(lease, outcome)
    return outcome.last === 'instance.disconnected'
  }

  #announce({ instanceId }: Lease, { recorded, deliverable }: Pick<ReportOutcome, 'recorded' | 'deliverable'>): void {
    if (deliverable) {
      this.#core.hints.publish('deliveries', instanceId)
      // An operator endpoint has a lane only while it has deliveries.
      this.#core.hints.publish('webhook', instanceId)
    }
    if (recorded) this.#core.hints.publish('log', instanceId)
  }

  recordHealth(lease: Lease, report: HealthReport, now: number): Promise<void> {
    return this.#health.record(lease, report, now)
  }

  findHealth(id: InstanceId, now: number): Promise<ConnectionHealth> {
    return this.#health.find(id, now)
  }

  async #request(request: GoalRequest) {
    const requested = await this.#core.write(this.#operations.request, request)
    if (requested) {
      this.#core.hints.publish('goal', request.id)
      this.#core.hints.publish('connection', request.id)
    }
    return requested
  }
}

function operations(core: Core, reports: ConnectionReports) {
  const { statements } = core
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
            .set(eb => ({ goal, goal_version: eb('goal_version', '+', 1), pairing_phone: pairingPhone }))
            .where('instance_id', '=', id)
            .where(isConfirmed ? sql<boolean>`true` : sql<boolean>`coalesce(cause, '') <> 'exported'`)
            .where(isLive)
            .returning('instance_id'),
        )
        return requested.length > 0
      },
    ),

    setProxy: oneByOne(
      'connections.proxy',
      (input: { id: InstanceId; sealed: Uint8Array | null }) => input.id,
      async (tx, { id, sealed }): Promise<boolean> => {
        const changed = await tx.query(
          db
            .updateTable('connections')
            .set({ sealed_proxy: sealed })
            .where('instance_id', '=', id)
            .where(isLive)
            .returning('instance_id'),
        )
        return changed.length > 0
      },
    ),

    record: fencedOneByOne(
      'connections.record',
      async (tx, { lease, change, now }: { lease: Lease; change: Change; now: number }) => {
        const ofInstance = db.selectFrom('connections').where('instance_id', '=', lease.instanceId)
        const [before] = await tx.query(
          statements.locking(
            ofInstance.select(['state', 'goal_version', 'phone', statements.now.as('now')]),
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
              ...columns(change, before.goal_version),
              state,
              ...(state !== before.state && { since: now }),
              ...((state === 'connected' || before.state === 'connected') && { last_connected_at: before.now }),
            })
            .where('instance_id', '=', lease.instanceId),
        )
        // A linked number ends every link that was handed out for linking it.
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

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString()
}

function columns(change: Change, goalVersion: number) {
  const { reason, cause, goal, ifGoalVersion = goalVersion, qr, qrExpiresAt, pairingCode, phone, retryAt } = change
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

function toRestriction(
  row: Pick<ConnectionsTable, 'restricted_since' | 'restricted_until' | 'restriction_told'>,
): Restriction | null {
  if (row.restricted_since === null) return null
  return { since: row.restricted_since, until: row.restricted_until!, reportedByWhatsapp: row.restriction_told === 1 }
}
