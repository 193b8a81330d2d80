import { connectionEventOf, type Reported } from '../../domain/connection/connection.ts'
import { connectionBody } from '../../domain/events/event.ts'
import { type InstanceId, newEventId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'
import type { EventRecorder } from '../events/event-recorder.ts'

export interface ReportOutcome {
  /** Whether an event was recorded. */
  recorded: boolean
  /** The instance has a new delivery that may start now. */
  deliverable: boolean
  /** The latest report; null if there is none. */
  last: Reported | null
}

/** Records an event for each visible change of a connection, in the commit of the change. */
export class ConnectionReports {
  readonly #statements: Statements
  readonly #recorder: EventRecorder
  readonly #find

  constructor(statements: Statements, recorder: EventRecorder) {
    const { db, now } = statements
    this.#statements = statements
    this.#recorder = recorder
    this.#find = statements.one((p: { instanceId: InstanceId }) =>
      db
        .selectFrom('connections')
        .leftJoin('connection_reports', 'connection_reports.instance_id', 'connections.instance_id')
        .select(['state', 'cause', 'reason', 'phone', 'last_connected_at as lastConnectedAt', 'reported'])
        .select(now.as('now'))
        .where('connections.instance_id', '=', p.instanceId),
    )
  }

  /** @param formerPhone the number that was linked before the change */
  async record(
    tx: Transaction,
    instanceId: InstanceId,
    now: number,
    formerPhone: string | null = null,
  ): Promise<ReportOutcome> {
    const [row] = await tx.run(this.#find, { instanceId })
    if (row === undefined) return { recorded: false, deliverable: false, last: null }
    const { cause, reason, phone, reported } = row
    const report = connectionEventOf(row, reported, row.now)
    if (report === null) return { recorded: false, deliverable: false, last: reported }
    await this.#note(tx, instanceId, report)
    if (report === 'unlinked') return { recorded: false, deliverable: false, last: report }
    const event = {
      instance_id: instanceId,
      id: newEventId(now),
      kind: report,
      timestamp: now,
      created_at: now,
      message_id: null,
      incoming_digest: null,
      body: connectionBody(report, instanceId, { cause, reason, phone: phone ?? formerPhone }, now),
    }
    const { deliverable } = await this.#recorder.record(tx, [event])
    return { recorded: true, deliverable: deliverable.has(instanceId), last: report }
  }

  async #note(tx: Transaction, instance_id: InstanceId, reported: Reported): Promise<void> {
    await tx.query(
      this.#statements.db
        .insertInto('connection_reports')
        .values({ instance_id, reported })
        .onConflict(oc => oc.column('instance_id').doUpdateSet({ reported })),
    )
  }
}
