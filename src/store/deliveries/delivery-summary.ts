import { type SelectQueryBuilder, sql } from 'kysely'
import type { Database } from '../engine/schema/database.ts'
import type { Readiness } from '../engine/schema/events.ts'
import type { DeliverySummary } from './deliveries.ts'

/** The latest delivery of an event: either the unfinished one or the latest finished one. */
export interface SummaryRow {
  open_seq: number | null
  open_url: string | null
  readiness: Readiness | null
  open_attempts: number | null
  due_at: number | null
  open_redelivery: number | null
  done_seq: number | null
  done_url: string | null
  done_state: 'delivered' | 'exhausted' | null
  done_attempts: number | null
  done_redelivery: number | null
}

/**
 * Not `= 0`, because that is the condition of the partial index of finished deliveries by state. Before PostgreSQL has
 * analyzed the table, it would use that index to find the row of one event.
 */
export function isLatest(superseded: string) {
  return sql<boolean>`${sql.ref(superseded)} <> 1`
}

/** Joins the unfinished delivery as `open` and the latest finished one as `done`. */
export function joinLatestDelivery<O>(query: SelectQueryBuilder<Database, 'events', O>) {
  return query
    .leftJoin('deliveries as open', join =>
      join.onRef('open.instance_id', '=', 'events.instance_id').onRef('open.event_id', '=', 'events.id'),
    )
    .leftJoin('finished_deliveries as done', join =>
      join
        .onRef('done.instance_id', '=', 'events.instance_id')
        .onRef('done.event_id', '=', 'events.id')
        .on(isLatest('done.superseded')),
    )
}

/** Selects the columns that `toSummary` needs. */
export function withLatestDelivery<O>(query: SelectQueryBuilder<Database, 'events', O>) {
  return joinLatestDelivery(query).select([
    'open.seq as open_seq',
    'open.url as open_url',
    'open.readiness',
    'open.attempts as open_attempts',
    'open.due_at',
    'open.redelivery as open_redelivery',
    'done.seq as done_seq',
    'done.url as done_url',
    'done.state as done_state',
    'done.attempts as done_attempts',
    'done.redelivery as done_redelivery',
  ])
}

export function toSummary(row: SummaryRow): DeliverySummary | null {
  if (row.open_seq !== null) {
    const blocked = row.readiness === 'blocked'
    return {
      id: String(row.open_seq),
      url: row.open_url!,
      state: blocked ? 'blocked' : 'pending',
      attempts: row.open_attempts!,
      nextAttemptAt: blocked ? null : row.due_at,
      redelivery: row.open_redelivery === 1,
    }
  }
  if (row.done_seq === null) return null
  return {
    id: String(row.done_seq),
    url: row.done_url!,
    state: row.done_state!,
    attempts: row.done_attempts!,
    nextAttemptAt: null,
    redelivery: row.done_redelivery === 1,
  }
}
