import { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import type { Core } from '../engine/core.ts'
import { seqBefore, toPage } from '../engine/cursor.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { AuditLogTable } from '../engine/schema/audit.ts'
import type { Audit, AuditCheck, AuditEntry, AuditFilter, AuditNumber, AuditRecord, PendingAudit } from './audit.ts'
import type { AuditedWrites } from './audited-writes.ts'
import { digestOf, NO_DIGEST } from './chain.ts'

/** A step of a check takes some milliseconds. Other calls run in between. */
const steps = new EventLoopBudget(1)

/** Records read in one step of a check. */
const STEP = 500

export class StoredAudit implements Audit {
  readonly #core: Core
  readonly #writes: AuditedWrites

  constructor(core: Core, writes: AuditedWrites) {
    this.#core = core
    this.#writes = writes
  }

  during<T>(entry: AuditEntry, change: (pending: PendingAudit) => T): T {
    return this.#writes.during(entry, change)
  }

  finish(pending: PendingAudit, succeeded: boolean): Promise<void> {
    return this.#writes.finish(pending, succeeded)
  }

  append(entry: AuditEntry): Promise<AuditNumber> {
    return this.#writes.append(entry)
  }

  async list(page: PageRequest, filter: AuditFilter): Promise<Page<AuditRecord>> {
    const { actor, action, instanceId, since, until } = filter
    let query = this.#core.statements.db.selectFrom('audit_log').selectAll().where('seq', '<', seqBefore(page))
    if (actor !== undefined) query = query.where('actor', '=', actor)
    if (action !== undefined) query = query.where('action', '=', action)
    if (instanceId !== undefined) query = query.where('instance', '=', instanceId)
    if (since !== undefined) query = query.where('at', '>=', since)
    if (until !== undefined) query = query.where('at', '<', until)
    const rows = await this.#core.reader.query(query.orderBy('seq', 'desc').limit(page.limit + 1))
    return toPage(rows, page.limit, row => row.seq, toRecord)
  }

  async verify(): Promise<AuditCheck> {
    const { db } = this.#core.statements
    const [head] = await this.#core.reader.query(db.selectFrom('audit_head').select(['seq', 'digest']))
    const entries = head?.seq ?? 0
    const digest = Buffer.from(head?.digest ?? NO_DIGEST)
    const check = { entries, digest: digest.toString('hex') }
    let previous: Uint8Array = NO_DIGEST
    for (let checked = 0; checked < entries; ) {
      await steps.take()
      const rows = await this.#core.reader.query(
        db
          .selectFrom('audit_log')
          .selectAll()
          .where('seq', '>', checked)
          .where('seq', '<=', entries)
          .orderBy('seq')
          .limit(STEP),
      )
      for (const row of rows) {
        if (row.seq !== checked + 1 || Buffer.compare(row.previous, previous) !== 0)
          return { ...check, brokenAt: checked + 1 }
        previous = digestOf(row)
        checked = row.seq
      }
      if (rows.length === 0) return { ...check, brokenAt: checked + 1 }
    }
    return { ...check, brokenAt: digest.equals(previous) ? null : Math.max(1, entries) }
  }
}

function toRecord(row: AuditLogTable): AuditRecord {
  return {
    seq: row.seq,
    at: row.at,
    actor: row.actor,
    actorName: row.actor_name,
    action: row.action,
    instanceId: row.instance,
    address: row.address,
    details: JSON.parse(row.details),
    digest: digestOf(row).toString('hex'),
  }
}
