import { type RawBuilder, sql } from 'kysely'
import type { Problem } from '../../domain/alert.ts'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import { type EndpointId, firstEventId, type InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { endedAtOwn, isToOperator, isToOwn } from '../engine/schema/events.ts'

/** A delivery is a problem once it has been retried for this long. Four attempts of the default schedule have failed by then. */
const RETRIED_FOR_MS = 60_000
/** Events given up earlier are no longer a problem. The panel counts the same period. */
const GIVEN_UP_FOR_MS = 7 * 24 * 3_600_000
const MAX_COUNTED = 1_000
/** Named in an alert. */
const MAX_HOSTS = 3

/** Finds the instances whose number or webhook does not work, and the operator endpoints that do not. */
export async function findProblems({ statements, reader }: Core, now: number): Promise<Problem[]> {
  const read = <O>(query: RawBuilder<O>) => reader.query<O>({ compile: () => query.compile(statements.db) })
  const [connections, deliveries, operators] = await Promise.all([
    read(connectionsQuery(statements.now)),
    read(deliveriesQuery(now)),
    read(operatorsQuery(now)),
  ])
  const retrying = deliveries.filter(row => row.retried_since !== null).map(({ subject }) => subject)
  const urls = retrying.length === 0 ? [] : await read(retriedUrlsQuery(retrying))
  const urlsOf = Map.groupBy(
    [...urls, ...operators.map(({ subject, url }) => ({ subject, url }))],
    ({ subject }) => subject,
  )
  const failing = [...deliveries, ...operators].flatMap(row =>
    deliveryProblems(
      row,
      (urlsOf.get(row.subject) ?? []).map(({ url }) => url),
    ),
  )
  return [...connections.map(connectionProblem), ...failing]
}

interface ConnectionRow {
  instance_id: InstanceId
  state: string
  reason: string
  since: number
}

/**
 * Linked numbers that are not connected, and numbers that were unlinked by WhatsApp or on the phone. Numbers that moved are stopped on
 * purpose: until somebody connects them, another program may use them.
 */
function connectionsQuery(clock: RawBuilder<number>): RawBuilder<ConnectionRow> {
  return sql<ConnectionRow>`
    select c.instance_id, c.state, c.reason,
      case when c.state = 'logged_out' then c.since else coalesce(c.last_connected_at, c.since) end as since
    from connections as c
    join leases as l on l.instance_id = c.instance_id
    join instances as i on i.id = c.instance_id
    where i.deleted_at is null and (
      (c.state = 'logged_out' and c.cause <> 'logged_out_as_asked')
      or (c.state not in ('unlinked', 'linking', 'logged_out') and coalesce(c.cause, '') not in ('imported', 'exported')
        and not (c.state = 'connected' and l.lease_until > ${clock})))`
}

function connectionProblem({ instance_id: subject, state, reason, since }: ConnectionRow): Problem {
  if (state === 'logged_out') return { rule: 'linking_lost', subject, since, detail: reason }
  // The row of an instance whose node died still says that it is connected.
  return { rule: 'number_down', subject, since, detail: state === 'connected' ? 'No node runs this number.' : reason }
}

interface DeliveriesRow {
  /** The instance, or the operator endpoint. */
  subject: InstanceId | EndpointId
  retried_since: number | null
  given_up: number
  /** Whether the newest event that was given up is the last of its endpoint that ended. */
  ends_in_failure: number
}

function deliveriesQuery(now: number): RawBuilder<DeliveriesRow> {
  const givenUpBy = (instance: RawBuilder<unknown>) => sql`finished_deliveries f
    where f.instance_id = ${instance} and f.state = 'exhausted' and f.superseded = 0
      and f.event_id >= ${firstEventId(now - GIVEN_UP_FOR_MS)} and ${endedAtOwn('f')}`
  const deliveredLater = sql`select 1 from finished_deliveries g
    where g.instance_id = f.instance_id and g.state = 'delivered' and g.superseded = 0
      and g.event_id > f.event_id and g.endpoint_id = f.endpoint_id`
  const newestGivenUp = sql`select case when exists (${deliveredLater}) then 0 else 1 end
    from ${givenUpBy(sql`found.subject`)} order by f.event_id desc limit 1`
  // `|| ''` keeps both databases from using the index of retries by time, which contains the whole backlog.
  const oldestRetry = sql`select e.created_at from deliveries d
    join events e on e.instance_id = d.instance_id and e.id = d.event_id
    where d.instance_id = l.instance_id and d.readiness || '' = 'retry' and ${isToOwn('d')}
      and d.event_id < ${firstEventId(now - RETRIED_FOR_MS)} order by d.event_id limit 1`
  // The subquery in `ends_in_failure` runs only where its result matters, because it may take long for a busy instance.
  return sql<DeliveriesRow>`select found.*,
      case when retried_since is null and given_up > 0 then (${newestGivenUp}) else 0 end as ends_in_failure
    from (select l.instance_id as subject, (${oldestRetry}) as retried_since,
        (select count(*) from (select 1 from ${givenUpBy(sql`l.instance_id`)} limit ${sql.lit(MAX_COUNTED)}) as counted)
          as given_up
      from leases as l join instances as i on i.id = l.instance_id where i.deleted_at is null) as found
    where retried_since is not null or given_up > 0`
}

/** The endpoints of these instances whose events are retried. */
function retriedUrlsQuery(instances: readonly string[]): RawBuilder<{ subject: string; url: string }> {
  const of = sql`in (${sql.join(instances)})`
  return sql`select subject, url from (
      select id as subject, ${sql.lit(DEFAULT_ENDPOINT)} as id, webhook_url as url from instances where id ${of} and webhook_url is not null
      union all select instance_id, id, url from endpoints where instance_id ${of} and deleted_at is null) as e
    where exists (select 1 from deliveries as d
      where d.instance_id = e.subject and d.endpoint_id = e.id and d.readiness = 'retry')
    order by subject, id`
}

/** A dead operator endpoint is one problem, however many instances have events for it. */
function operatorsQuery(now: number): RawBuilder<DeliveriesRow & { url: string }> {
  const ended = (state: 'delivered' | 'exhausted') => sql`finished_deliveries f
    where f.endpoint_id = o.id and ${isToOperator('f')} and f.superseded = 0 and f.state = ${sql.lit(state)}
      and f.event_id >= ${firstEventId(now - GIVEN_UP_FOR_MS)}`
  const last = (state: 'delivered' | 'exhausted') => sql`coalesce((select max(f.event_id) from ${ended(state)}), '')`
  return sql`select * from (select o.id as subject, o.url,
      (select min(e.created_at) from deliveries d
        join events e on e.instance_id = d.instance_id and e.id = d.event_id
        where d.endpoint_id = o.id and ${isToOperator('d')} and d.readiness || '' = 'retry'
          and d.event_id < ${firstEventId(now - RETRIED_FOR_MS)}) as retried_since,
      (select count(*) from (select 1 from ${ended('exhausted')} limit ${sql.lit(MAX_COUNTED)}) as counted) as given_up,
      case when ${last('exhausted')} > ${last('delivered')} then 1 else 0 end as ends_in_failure
    from operator_endpoints as o where o.deleted_at is null) as found
    where retried_since is not null or given_up > 0`
}

/** @param urls of the endpoints that fail, if they are known */
function deliveryProblems(row: DeliveriesRow, urls: readonly string[]): Problem[] {
  const { subject } = row
  const problems: Problem[] = []
  if (row.retried_since !== null || Number(row.ends_in_failure) === 1)
    problems.push({
      rule: 'webhook_failing',
      subject,
      since: row.retried_since,
      detail: failureDetail(urls),
    })
  const givenUp = Number(row.given_up)
  if (givenUp > 0)
    problems.push({
      rule: 'events_given_up',
      subject,
      since: null,
      detail: givenUpDetail(givenUp),
    })
  return problems
}

/** @param count at most `MAX_COUNTED`, which stands for any larger number */
function givenUpDetail(count: number): string {
  if (count === 1) return '1 event was given up after the last attempt.'
  const atLeast = count === MAX_COUNTED ? 'At least ' : ''
  return `${atLeast}${count.toLocaleString('en')} events were given up after the last attempt.`
}

/** A path or a query may hold a secret, so only the hosts are named. */
function failureDetail(urls: readonly string[]): string {
  const hosts = [...new Set(urls.map(url => new URL(url).host))]
  const [first] = hosts
  if (first === undefined) return 'The webhook does not accept events.'
  if (hosts.length === 1) return `The webhook at ${first} does not accept events.`
  const others = hosts.length - MAX_HOSTS
  const named = [...hosts.slice(0, MAX_HOSTS), ...(others > 0 ? [`${others} more`] : [])]
  return `The webhooks at ${named.slice(0, -1).join(', ')} and ${named.at(-1)} do not accept events.`
}
