import type { CallPolicy } from '../../domain/connection/incoming-call.ts'
import type { PasskeyAnswer } from '../../domain/connection/passkey.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipients/recipient.ts'
import { proxyPlace } from '../encryption/sealing.ts'
import type { Core } from '../engine/core.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { RowOf, Statements } from '../engine/statement.ts'
import type { EventRecorder } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import { type ConnectionChange, toRestriction } from './connection-columns.ts'
import { ConnectionReports, type ReportOutcome } from './connection-reports.ts'
import { connectionWrites, type GoalRequest } from './connection-writes.ts'
import type { ConnectionHealth, ConnectionRecord, Connections, HealthReport, SameNumber } from './connections.ts'
import { type AnswerOutcome, PasskeyAnswers } from './passkey-answers.ts'

const CLOSES_MS = 24 * 60 * 60_000

interface HealthInput {
  lease: Lease
  report: HealthReport
  now: number
}

export class StoredConnections implements Connections {
  readonly #core: Core
  readonly #operations
  readonly #recordHealth
  readonly #findHealth
  readonly #findCloses
  readonly #passkeys

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#operations = connectionWrites(core.statements, new ConnectionReports(core.statements, recorder))
    this.#recordHealth = healthOperation(core.statements)
    const { db } = core.statements
    this.#findHealth = core.statements.one((p: { id: InstanceId }) =>
      db.selectFrom('connection_health').selectAll().where('instance_id', '=', p.id),
    )
    this.#findCloses = core.statements.one((p: { id: InstanceId; since: number }) =>
      db
        .selectFrom('connection_closes')
        .select(['code', 'at'])
        .where('instance_id', '=', p.id)
        .where('at', '>', p.since)
        .orderBy('at', 'desc'),
    )
    this.#passkeys = new PasskeyAnswers(core)
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
      passkey: row.passkey === null ? null : JSON.parse(row.passkey),
      phone: row.phone,
      lastConnectedAt: row.last_connected_at,
      retryAt: row.retry_at,
      restriction: toRestriction(row),
      calls: { reject: row.rejects_calls === 1, text: row.call_text },
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
    const isSet = await this.#core.write(this.#operations.set, { id, values: { sealed_proxy: sealed } })
    if (isSet) {
      this.#core.hints.publish('goal', id)
      this.#core.hints.publish('connection', id)
    }
    return isSet
  }

  async listSameNumber(
    { instanceId, kind, phone }: Parameters<Connections['listSameNumber']>[0],
    limit: number,
    reached: readonly InstanceId[] | null = null,
  ): Promise<SameNumber[]> {
    if (phone === null || kind !== 'whatsapp') return []
    const { db } = this.#core.statements
    const others = await this.#core.reader.query(
      db
        .selectFrom('connections')
        .innerJoin('instances', 'instances.id', 'connections.instance_id')
        .select(['instances.id', 'instances.name', 'instances.seq'])
        .where('connections.phone', '=', phone)
        .where('connections.instance_id', '<>', instanceId)
        .where('instances.kind', '=', 'whatsapp')
        .where('instances.deleted_at', 'is', null),
    )
    const listed = reached === null ? others : others.filter(({ id }) => reached.includes(id))
    // Sorted here: with an `order by`, SQLite would read all instances in this order.
    const sorted = listed.toSorted((one, other) => Number(one.seq) - Number(other.seq))
    return sorted.slice(0, limit).map(({ id, name }) => ({ id, name }))
  }

  setCalls(id: InstanceId, { reject, text }: CallPolicy): Promise<boolean> {
    return this.#core.write(this.#operations.set, { id, values: { rejects_calls: reject ? 1 : null, call_text: text } })
  }

  async record(lease: Lease, change: ConnectionChange, now: number): Promise<void> {
    this.#announce(lease, await this.#core.write(this.#operations.record, { lease, change, now }))
    this.#core.hints.publish('connection', lease.instanceId)
  }

  answerPasskey(id: InstanceId, answer: PasskeyAnswer): Promise<AnswerOutcome> {
    return this.#passkeys.put(id, answer)
  }

  takePasskeyAnswer(lease: Lease, goalVersion: number): Promise<PasskeyAnswer | null> {
    return this.#passkeys.take(lease, goalVersion)
  }

  eraseOldPasskeyAnswers(): Promise<void> {
    return this.#passkeys.eraseOld()
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
    return this.#core.write(this.#recordHealth, { lease, report, now })
  }

  async findHealth(id: InstanceId, now: number): Promise<ConnectionHealth> {
    const { reader } = this.#core
    const [[row], closes] = await Promise.all([
      reader.run(this.#findHealth, { id }),
      reader.run(this.#findCloses, { id, since: now - CLOSES_MS }),
    ])
    return {
      lastFrameAt: row?.last_frame_at ?? null,
      acknowledgement: row?.ack_at == null ? null : { at: row.ack_at, latencyMs: row.ack_latency_ms! },
      undecryptable: row?.undecryptable ?? 0,
      lastUndecryptableAt: row?.undecryptable_at ?? null,
      closes: byCode(closes),
    }
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

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString()
}

/** Groups closes by code. Expects the newest first and keeps that order. */
function byCode(closes: readonly { code: number; at: number }[]): ConnectionHealth['closes'] {
  const counted = new Map<number, { code: number; count: number; lastAt: number }>()
  for (const { code, at } of closes) {
    const entry = counted.get(code)
    if (entry) entry.count += 1
    else counted.set(code, { code, count: 1, lastAt: at })
  }
  return [...counted.values()]
}

const HEALTH = {
  instance_id: 'text',
  last_frame_at: 'integer?',
  ack_at: 'integer?',
  ack_latency_ms: 'integer?',
  undecryptable: 'integer',
  undecryptable_at: 'integer?',
} as const
const CLOSE = { instance_id: 'text', at: 'integer', code: 'integer' } as const

/** A node reports on all its connections at the same time; these reports share one commit. */
function healthOperation(statements: Statements): Operation<HealthInput, void> {
  const put = statements.insert('connection_health', HEALTH, { replace: ['instance_id'] })
  const addClose = statements.insert('connection_closes', CLOSE, {
    finish: query => query.onConflict(oc => oc.doNothing()),
  })
  const forget = statements.one((p: { instanceId: InstanceId; before: number }) =>
    statements.db.deleteFrom('connection_closes').where('instance_id', '=', p.instanceId).where('at', '<', p.before),
  )
  return {
    name: 'connections.health',
    ...fenced,
    keys: () => ['health'],
    async run(tx, inputs) {
      const rows: RowOf<typeof HEALTH>[] = []
      const closes: RowOf<typeof CLOSE>[] = []
      for (const { lease, report } of inputs) {
        const { instanceId: instance_id } = lease
        rows.push({
          instance_id,
          last_frame_at: report.lastFrameAt,
          ack_at: report.acknowledgement?.at ?? null,
          ack_latency_ms: report.acknowledgement?.latencyMs ?? null,
          undecryptable: report.undecryptable,
          undecryptable_at: report.lastUndecryptableAt,
        })
        for (const { at, code } of report.closes) closes.push({ instance_id, at, code })
      }
      await tx.each(put, rows)
      if (closes.length > 0) await tx.each(addClose, closes)
      for (const { lease, report, now } of inputs) {
        if (report.closes.length > 0) await tx.run(forget, { instanceId: lease.instanceId, before: now - CLOSES_MS })
      }
      return []
    },
  }
}
