import { type SelectQueryBuilder, sql } from 'kysely'
import type { DeliveryFilter } from '../../domain/events/delivery.ts'
import type { EndpointId } from '../../domain/ids.ts'
import type { Database } from '../engine/schema/database.ts'
import { isToOwn, type Readiness } from '../engine/schema/events.ts'
import type { DeliverySummary } from './deliveries.ts'

/** The endpoints of an instance, without those that receive the events of all instances. */
export const OWN = Symbol('own endpoints')

/** The two candidates for the delivery that a list shows for an event: an unfinished one (`open`) and a finished one (`done`). */
export interface SummaryRow {
  open_seq: number | null
  open_endpoint: string | null
  open_url: string | null
  readiness: Readiness | null
  open_attempts: number | null
  due_at: number | null
  open_redelivery: number | null
  done_seq: number | null
  done_endpoint: string | null
  done_url: string | null
  done_state: 'delivered' | 'exhausted' | null
  done_attempts: number | null
  done_redelivery: number | null
}

/**
 * Uses `<> 1`, because `= 0` is the condition of the partial index of finished deliveries by state. Until PostgreSQL
 * has analysed the table, it would use that index to find the row of one event.
 */
export function isLatest(superseded: string) {
  return sql<boolean>`${sql.ref(superseded)} <> 1`
}

/**
 * Joins one unfinished delivery of each event as `open`, and one finished delivery, the latest of its endpoint, as
 * `done`. If there are several, prefers one in `state`, by default one that failed; among equals the oldest.
 * @param state the state to prefer
 * @param endpoint only deliveries to this endpoint, or to the instance's own ones
 */
export function joinLatestDelivery<O>(
  query: SelectQueryBuilder<Database, 'events', O>,
  state?: DeliveryFilter,
  endpoint?: EndpointId | typeof OWN,
) {
  const to = (alias: string) => {
    if (endpoint === undefined) return sql``
    return endpoint === OWN ? sql` and ${isToOwn(alias)}` : sql` and ${sql.ref(`${alias}.endpoint_id`)} = ${endpoint}`
  }
  const readiness = state === 'blocked' ? sql`d.readiness = 'blocked'` : sql`d.readiness = 'retry'`
  const open = sql<number>`(select d.seq from deliveries as d
    where d.instance_id = events.instance_id and d.event_id = events.id${to('d')}
    order by case when ${readiness} then 0 when d.readiness = 'first' then 1 else 2 end, d.seq limit 1)`
  const done = sql<number>`(select f.seq from finished_deliveries as f
    where f.instance_id = events.instance_id and f.event_id = events.id and ${isLatest('f.superseded')}${to('f')}
    order by case when f.state = ${sql.lit(state === 'delivered' ? state : 'exhausted')} then 0 else 1 end, f.seq limit 1)`
  return query
    .leftJoin('deliveries as open', join =>
      join
        .onRef('open.instance_id', '=', 'events.instance_id')
        .onRef('open.event_id', '=', 'events.id')
        .on('open.seq', '=', open),
    )
    .leftJoin('finished_deliveries as done', join =>
      join
        .onRef('done.instance_id', '=', 'events.instance_id')
        .onRef('done.event_id', '=', 'events.id')
        .on('done.seq', '=', done),
    )
}

/** Selects the columns that `toSummary` needs. */
export function withLatestDelivery<O>(
  query: SelectQueryBuilder<Database, 'events', O>,
  state?: DeliveryFilter,
  endpointId?: EndpointId,
) {
  return joinLatestDelivery(query, state, endpointId).select([
    'open.seq as open_seq',
    'open.endpoint_id as open_endpoint',
    'open.url as open_url',
    'open.readiness',
    'open.attempts as open_attempts',
    'open.due_at',
    'open.redelivery as open_redelivery',
    'done.seq as done_seq',
    'done.endpoint_id as done_endpoint',
    'done.url as done_url',
    'done.state as done_state',
    'done.attempts as done_attempts',
    'done.redelivery as done_redelivery',
  ])
}

const OPEN: ReadonlySet<DeliveryFilter | undefined> = new Set(['pending', 'retrying', 'blocked'] as const)

/** Prefers an exhausted delivery, then an unfinished one, then a delivered one. @param state the state to prefer instead */
export function toSummary(row: SummaryRow, state?: DeliveryFilter): DeliverySummary | null {
  const isDoneShown = row.done_state === 'exhausted' ? !OPEN.has(state) : state === 'delivered'
  if (row.open_seq !== null && !(isDoneShown && row.done_seq !== null)) {
    const blocked = row.readiness === 'blocked'
    return {
      id: String(row.open_seq),
      endpointId: row.open_endpoint!,
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
    endpointId: row.done_endpoint!,
    url: row.done_url!,
    state: row.done_state!,
    attempts: row.done_attempts!,
    nextAttemptAt: null,
    redelivery: row.done_redelivery === 1,
  }
}
