import { type RawBuilder, sql } from 'kysely'
import { CONNECTION_STATES, type ConnectionState } from '../../domain/connection/connection.ts'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import { RECEIVING_FAILURES, type ReceivingFailure } from '../../domain/media.ts'
import { currentStateOf } from '../connections/current-state.ts'
import type { Core } from '../engine/core.ts'
import { MAX_TOTAL, type StoreTotals } from './statistics.ts'

export async function readTotals({ statements, reader }: Core): Promise<StoreTotals> {
  const { db, now, dialect } = statements
  const read = <O>(query: RawBuilder<O>) => reader.query<O>({ compile: () => query.compile(db) })
  const [[waiting], states, [size], [media]] = await Promise.all([
    read(waitingQuery(now)),
    read(connectionsQuery(now)),
    read(dialect.bytes),
    read(mediaQuery()),
  ])
  const age = (at: number | null | undefined) => (at == null ? 0 : Math.max(0, Number(waiting!.now) - at))
  return {
    queued: Number(waiting!.queued),
    oldestQueuedMs: age(waiting!.oldest_queued_at),
    deliveries: {
      first: Number(waiting!.first),
      retry: Number(waiting!.retry),
      blocked: Number(waiting!.blocked),
    },
    oldestDueMs: Math.max(age(waiting!.oldest_first_at), age(waiting!.oldest_retry_at)),
    connections: countStates(states),
    unowned: states.reduce((sum, { instances, is_owned }) => sum + (is_owned ? 0 : Number(instances)), 0),
    bytes: Number(size?.bytes ?? 0),
    media: {
      bytes: Number(media!.bytes),
      pending: Number(media!.pending),
      fromUrls: Number(media!.from_urls),
      failed: countFailures(media!),
    },
  }
}

const count = (rows: RawBuilder<unknown>) =>
  sql`(select count(*) from (select 1 from ${rows} limit ${sql.lit(MAX_TOTAL)}) as counted)`

interface WaitingRow {
  now: number
  queued: number
  first: number
  retry: number
  blocked: number
  oldest_queued_at: number | null
  oldest_first_at: number | null
  oldest_retry_at: number | null
}

/** Messages to be sent now: neither scheduled ones nor commands. */
const WAITS = sql`state = 'queued' and seq > 0 and messages.id >= 'msg_'`

/**
 * Counts use partial indexes. The oldest entry is found among the first entries of each instance's or endpoint's index,
 * without the endpoints whose deliveries are held.
 */
function waitingQuery(now: RawBuilder<number>): RawBuilder<WaitingRow> {
  const oldest = (first: RawBuilder<unknown>, of = sql`leases as l`) =>
    sql`(select min(heads.at) from (select (${first}) as at from ${of}) as heads)`
  const endpoints = sql`(select id as instance_id, ${sql.lit(DEFAULT_ENDPOINT)} as id from instances
      where webhook_active = 1 or deleted_at is not null
    union all select instance_id, id from endpoints where active = 1 or deleted_at is not null
    union all select i.id as instance_id, o.id from operator_endpoints as o cross join instances as i
      where o.active = 1 or o.deleted_at is not null or i.deleted_at is not null) as l`
  return sql<WaitingRow>`select ${now} as now,
    ${count(sql`messages where ${WAITS}`)} as queued,
    ${count(sql`deliveries where readiness = 'first'`)} as first,
    ${count(sql`deliveries where readiness = 'retry'`)} as retry,
    ${count(sql`deliveries where readiness = 'blocked'`)} as blocked,
    ${oldest(sql`select coalesce(not_before, created_at) from messages
      where messages.instance_id = l.instance_id and ${WAITS} order by seq limit 1`)} as oldest_queued_at,
    ${oldest(
      sql`select d.due_at from deliveries as d
      where d.instance_id = l.instance_id and d.endpoint_id = l.id and d.readiness = 'first'
      order by d.seq limit 1`,
      endpoints,
    )} as oldest_first_at,
    ${oldest(
      sql`select d.due_at from deliveries as d
      where d.instance_id = l.instance_id and d.endpoint_id = l.id and d.readiness = 'retry'
      order by d.due_at, d.seq limit 1`,
      endpoints,
    )} as oldest_retry_at`
}

type MediaRow = { bytes: number; pending: number; from_urls: number } & Record<ReceivingFailure, number>

const FAILURES = Object.keys(RECEIVING_FAILURES) as ReceivingFailure[]

function mediaQuery(): RawBuilder<MediaRow> {
  const failed = FAILURES.map(reason => {
    const rows = sql`media where received = 1 and gone_at is not null and gone_reason = ${sql.lit(reason)}`
    return sql`${count(rows)} as ${sql.ref(reason)}`
  })
  return sql<MediaRow>`select (select coalesce(sum(bytes), 0) from media_usage) as bytes,
    ${count(sql`media_downloads`)} as pending, ${count(sql`media_fetches`)} as from_urls, ${sql.join(failed)}`
}

function countFailures(row: MediaRow): Record<ReceivingFailure, number> {
  return Object.fromEntries(FAILURES.map(reason => [reason, Number(row[reason])])) as Record<ReceivingFailure, number>
}

interface StateRow {
  state: ConnectionState
  is_owned: number
  instances: number
}

/** Counts instances by state. */
function connectionsQuery(now: RawBuilder<number>): RawBuilder<StateRow> {
  return sql<StateRow>`
    select state, is_owned, count(*) as instances from (
      select
        case when l.owner is not null and l.lease_until > ${now} then 1 else 0 end as is_owned,
        ${currentStateOf('c', 'l', now)} as state
      from connections as c
      join leases as l on l.instance_id = c.instance_id
      join instances as i on i.id = c.instance_id
      where i.deleted_at is null
    ) as current_states group by state, is_owned`
}

function countStates(rows: readonly StateRow[]): Record<ConnectionState, number> {
  const countOf = (state: ConnectionState) =>
    rows.reduce((sum, row) => sum + (row.state === state ? Number(row.instances) : 0), 0)
  return Object.fromEntries(CONNECTION_STATES.map(state => [state, countOf(state)])) as Record<ConnectionState, number>
}
