import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'
import type { ConnectionHealth, HealthReport } from './connections.ts'

const CLOSES_MS = 24 * 60 * 60_000

interface Input {
  lease: Lease
  report: HealthReport
  now: number
}

export class StoredHealth {
  readonly #core: Core
  readonly #record
  readonly #find
  readonly #findCloses

  constructor(core: Core) {
    const { db } = core.statements
    this.#core = core
    this.#record = recordOperation(core.statements)
    this.#find = core.statements.one((p: { id: InstanceId }) =>
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
  }

  async record(lease: Lease, report: HealthReport, now: number): Promise<void> {
    await this.#core.write(this.#record, { lease, report, now })
  }

  async find(id: InstanceId, now: number): Promise<ConnectionHealth> {
    const { reader } = this.#core
    const [[row], closes] = await Promise.all([
      reader.run(this.#find, { id }),
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

/** A node reports on all its connections at the same time; these reports share one commit. */
function recordOperation(statements: Statements): Operation<Input, void> {
  const put = statements.insert(
    'connection_health',
    {
      instance_id: 'text',
      last_frame_at: 'integer?',
      ack_at: 'integer?',
      ack_latency_ms: 'integer?',
      undecryptable: 'integer',
      undecryptable_at: 'integer?',
    },
    { replace: ['instance_id'] },
  )
  const addClose = statements.insert(
    'connection_closes',
    { instance_id: 'text', at: 'integer', code: 'integer' },
    { finish: query => query.onConflict(oc => oc.doNothing()) },
  )
  const forget = statements.one((p: { instanceId: InstanceId; before: number }) =>
    statements.db.deleteFrom('connection_closes').where('instance_id', '=', p.instanceId).where('at', '<', p.before),
  )
  return {
    name: 'connections.health',
    ...fenced,
    keys: () => ['health'],
    async run(tx, inputs) {
      await tx.each(put, inputs.map(toRow))
      const closing = inputs.filter(({ report }) => report.closes.length > 0)
      const closes = closing.flatMap(({ lease, report }) =>
        report.closes.map(({ at, code }) => ({ instance_id: lease.instanceId, at, code })),
      )
      if (closes.length > 0) await tx.each(addClose, closes)
      for (const { lease, now } of closing) {
        await tx.run(forget, { instanceId: lease.instanceId, before: now - CLOSES_MS })
      }
      return []
    },
  }
}

function toRow({ lease, report }: Input) {
  return {
    instance_id: lease.instanceId,
    last_frame_at: report.lastFrameAt,
    ack_at: report.acknowledgement?.at ?? null,
    ack_latency_ms: report.acknowledgement?.latencyMs ?? null,
    undecryptable: report.undecryptable,
    undecryptable_at: report.lastUndecryptableAt,
  }
}
