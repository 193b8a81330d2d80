import { type RawBuilder, sql } from 'kysely'
import { type EndpointId, type EventId, firstEventId, type InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { type EndpointDeliveries, MAX_LOOKED_AT, MAX_RECENT } from './statistics.ts'

interface OpenRow {
  first: number
  retrying: number
  failed_event: EventId | null
}

interface EndedRow {
  endpoint_id: EndpointId
  event_id: EventId
  recent: number
}

interface AttemptRow {
  started_at: number
  duration_ms: number
  status: number | null
  error: string | null
}

/** Each query reads a bounded number of rows by an index. */
export async function readEndpointDeliveries(
  { reader, statements }: Core,
  instanceId: InstanceId,
  endpointIds: readonly EndpointId[],
  givenUpSince: number,
): Promise<EndpointDeliveries[]> {
  const run = <O>(query: RawBuilder<O>) => reader.query<O>({ compile: () => query.compile(statements.db) })
  const newest = (state: 'delivered' | 'exhausted') => run(endedQuery(instanceId, state, firstEventId(givenUpSince)))
  const [delivered, exhausted, blocked] = await Promise.all([
    newest('delivered'),
    newest('exhausted'),
    run(blockedQuery(instanceId)),
  ])

  async function lastAttempt(endpointId: EndpointId, eventId: EventId | null | undefined): Promise<AttemptRow | null> {
    if (!eventId) return null
    const [row] = await run(lastAttemptQuery(instanceId, eventId, endpointId))
    return row ?? null
  }

  return Promise.all(
    endpointIds.map(async endpointId => {
      const of = <R extends { endpoint_id: EndpointId }>(rows: R[]) => rows.find(row => row.endpoint_id === endpointId)
      const [open] = await run(openQuery(instanceId, endpointId))
      const retrying = Number(open?.retrying ?? 0)
      const [success, failure, retried] = await Promise.all([
        lastAttempt(endpointId, of(delivered)?.event_id),
        lastAttempt(endpointId, of(exhausted)?.event_id),
        lastAttempt(endpointId, open?.failed_event),
      ])
      const last = retried ?? failure
      const recent = {
        retrying,
        givenUp: Number(of(exhausted)?.recent ?? 0),
        lastDeliveredAt: endOf(success),
        lastGivenUpAt: endOf(failure),
      }
      return {
        endpointId,
        recent,
        waiting: Math.min(MAX_RECENT, retrying + Number(open?.first ?? 0) + Number(of(blocked)?.count ?? 0)),
        lastFailure: last && { at: endOf(last)!, status: last.status, error: last.error },
      }
    }),
  )
}

function endOf(attempt: AttemptRow | null): number | null {
  return attempt && attempt.started_at + attempt.duration_ms
}

function openQuery(instanceId: InstanceId, endpointId: EndpointId): RawBuilder<OpenRow> {
  const open = (readiness: 'first' | 'retry') => sql`from deliveries
    where instance_id = ${instanceId} and endpoint_id = ${endpointId} and readiness = ${sql.lit(readiness)}`
  const count = (readiness: 'first' | 'retry') =>
    sql`(select count(*) from (select 1 ${open(readiness)} limit ${sql.lit(MAX_RECENT)}) as counted)`
  return sql<OpenRow>`select ${count('first')} as first, ${count('retry')} as retrying,
    (select event_id from (select event_id, failed_at ${open('retry')} limit ${sql.lit(MAX_RECENT)}) as retried
      order by failed_at desc, event_id desc limit 1) as failed_event`
}

function blockedQuery(instanceId: InstanceId): RawBuilder<{ endpoint_id: EndpointId; count: number }> {
  return sql`select endpoint_id, count(*) as count from
    (select endpoint_id from deliveries where instance_id = ${instanceId} and readiness = 'blocked'
      limit ${sql.lit(MAX_RECENT)}) as blocked
    group by endpoint_id`
}

/** Finds for each endpoint the newest event with this outcome, and the number of such events created since `first`. */
function endedQuery(instanceId: InstanceId, state: 'delivered' | 'exhausted', first: EventId): RawBuilder<EndedRow> {
  return sql<EndedRow>`select endpoint_id, max(event_id) as event_id,
      sum(case when event_id >= ${first} then 1 else 0 end) as recent
    from (select endpoint_id, event_id from finished_deliveries
      where instance_id = ${instanceId} and state = ${sql.lit(state)} and superseded = 0
      order by event_id desc limit ${sql.lit(MAX_LOOKED_AT)}) as newest
    group by endpoint_id`
}

function lastAttemptQuery(instanceId: InstanceId, eventId: EventId, endpointId: EndpointId): RawBuilder<AttemptRow> {
  return sql<AttemptRow>`select a.started_at, a.duration_ms, a.status, a.error from attempts a
    where a.instance_id = ${instanceId} and a.event_id = ${eventId} and a.delivery_seq in (
      select seq from deliveries where instance_id = ${instanceId} and event_id = ${eventId} and endpoint_id = ${endpointId}
      union all
      select seq from finished_deliveries
        where instance_id = ${instanceId} and event_id = ${eventId} and endpoint_id = ${endpointId})
    order by a.started_at desc, a.attempt_number desc limit 1`
}
