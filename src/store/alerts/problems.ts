import { type RawBuilder, sql } from 'kysely'
import type { Problem } from '../../domain/alert.ts'
import { REQUESTED_LOGOUT } from '../../domain/connection/connection.ts'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import { type EndpointId, firstEventId, type InstanceId } from '../../domain/ids.ts'
import { newestGivenUp } from '../deliveries/given-up.ts'
import type { Core } from '../engine/core.ts'
import { isToOperator } from '../engine/schema/events.ts'

/** A delivery that waits for a retry is a problem once its first attempt is this old. */
const RETRIED_FOR_MS = 60_000
/** An event that was given up is a problem until it is this old. The panel counts the same period. */
const GIVEN_UP_FOR_MS = 7 * 24 * 3_600_000
const MAX_COUNTED = 1_000
/** An alert names at most this many hosts. */
const MAX_HOSTS = 3

/** Finds the instances whose number or webhook does not work, and the operator endpoints that do not. */
export async function findProblems({ statements, reader }: Core, now: number): Promise<Problem[]> {
  const read = <O>(query: RawBuilder<O>) => reader.query<O>({ compile: () => query.compile(statements.db) })
  const [connections, own, operators] = await Promise.all([
    read(connectionsQuery(statements.now)),
    read(deliveriesQuery(now)),
    read(operatorsQuery(now)),
  ])
  const endpoints = Map.groupBy([...own, ...operators], ({ subject }) => subject)
  return [...connections.map(connectionProblem), ...[...endpoints.values()].flatMap(deliveryProblems)]
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
      (c.state = 'logged_out' and c.cause not in (${sql.join(REQUESTED_LOGOUT.map(cause => sql.lit(cause)))}))
      or (c.state not in ('unlinked', 'linking', 'logged_out') and coalesce(c.cause, '') not in ('imported', 'exported')
        and not (c.state = 'connected' and l.lease_until > ${clock})))`
}

function connectionProblem({ instance_id: subject, state, reason, since }: ConnectionRow): Problem {
  if (state === 'logged_out') return { rule: 'linking_lost', subject, since, detail: reason }
  // The row of an instance whose node died still says that it is connected.
  return { rule: 'number_down', subject, since, detail: state === 'connected' ? 'No node runs this number.' : reason }
}

/** An endpoint whose events fail or were missed. */
interface EndpointRow {
  /** The instance, or the operator endpoint. */
  subject: InstanceId | EndpointId
  url: string
  /** 1 if a delivery has been retried for a while. 0 for a paused endpoint: nothing is posted to it, so its retries wait. */
  is_retrying: number
  given_up: number
  /** 1 if an event was given up and no later event was delivered. 0 for a paused endpoint. */
  ends_in_failure: number
}

/** Endpoints that an instance still has. Deleted ones are no problem: their events cannot be redelivered. */
const OWN_ENDPOINTS = sql`(
    select id as subject, ${sql.lit(DEFAULT_ENDPOINT)} as id, webhook_url as url, webhook_active as active
    from instances where webhook_url is not null and deleted_at is null
  union all
    select own.instance_id, own.id, own.url, own.active from endpoints as own
    join instances as i on i.id = own.instance_id where own.deleted_at is null and i.deleted_at is null)`

function deliveriesQuery(now: number): RawBuilder<EndpointRow> {
  const givenUp = sql`${newestGivenUp(sql`e.subject`, firstEventId(now - GIVEN_UP_FOR_MS))} as given_up
    where given_up.endpoint_id = e.id`
  const isRetrying = sql`exists (select 1 from deliveries d where d.instance_id = e.subject and d.endpoint_id = e.id
    and d.readiness = 'retry' and ${isRetriedForLong(now)})`
  const later = sql`g.state = 'delivered' and g.superseded = 0
    and g.event_id > (select max(given_up.event_id) from ${givenUp}) and g.endpoint_id = e.id`
  // The default endpoint is found by its instance, and has no index: it receives most events, so its next delivery is usually near.
  const deliveredLater = sql`case when e.id = ${sql.lit(DEFAULT_ENDPOINT)}
    then exists (select 1 from finished_deliveries g where g.instance_id = e.subject and ${later})
    else exists (select 1 from finished_deliveries g where g.endpoint_id <> ${sql.lit(DEFAULT_ENDPOINT)} and ${later}) end`
  // Materialised, so that each subquery runs once. `deliveredLater` may take long for a default endpoint that is rarely used, so it
  // runs only where its result matters.
  return sql<EndpointRow>`with found as materialized (
      select e.*, case when e.active = 1 and ${isRetrying} then 1 else 0 end as is_retrying,
        (select count(*) from (select 1 from ${givenUp} limit ${sql.lit(MAX_COUNTED)}) as counted) as given_up
      from ${OWN_ENDPOINTS} as e)
    select e.subject, e.url, e.is_retrying, e.given_up,
      case when e.active = 1 and e.is_retrying = 0 and e.given_up > 0 and not (${deliveredLater})
        then 1 else 0 end as ends_in_failure
    from found as e where e.is_retrying = 1 or e.given_up > 0 order by e.subject, e.id`
}

/** Whether the first attempt of the delivery `d` was long ago. Its event may be older: it was not tried while Pombal or the endpoint was stopped. */
function isRetriedForLong(now: number): RawBuilder<boolean> {
  return sql<boolean>`(select a.started_at from attempts a where a.instance_id = d.instance_id and a.event_id = d.event_id
    and a.delivery_seq = d.seq and a.attempt_number = 1) < ${sql.lit(now - RETRIED_FOR_MS)}`
}

/** A dead operator endpoint is one problem, however many instances have events for it. */
function operatorsQuery(now: number): RawBuilder<EndpointRow> {
  const ended = (state: 'delivered' | 'exhausted') => sql`finished_deliveries f
    where f.endpoint_id = o.id and ${isToOperator('f')} and f.superseded = 0 and f.state = ${sql.lit(state)}
      and f.event_id >= ${firstEventId(now - GIVEN_UP_FOR_MS)}`
  const last = (state: 'delivered' | 'exhausted') => sql`coalesce((select max(f.event_id) from ${ended(state)}), '')`
  return sql`select * from (select o.id as subject, o.url,
      case when o.active = 1 and exists (select 1 from deliveries d where d.endpoint_id = o.id and ${isToOperator('d')}
        and d.readiness || '' = 'retry' and ${isRetriedForLong(now)}) then 1 else 0 end as is_retrying,
      (select count(*) from (select 1 from ${ended('exhausted')} limit ${sql.lit(MAX_COUNTED)}) as counted) as given_up,
      case when o.active = 1 and ${last('exhausted')} > ${last('delivered')} then 1 else 0 end as ends_in_failure
    from operator_endpoints as o where o.deleted_at is null) as found
    where is_retrying = 1 or given_up > 0`
}

/** @param endpoints of one subject */
function deliveryProblems(endpoints: readonly EndpointRow[]): Problem[] {
  const { subject } = endpoints[0]!
  const problems: Problem[] = []
  const failing = endpoints.filter(row => Number(row.is_retrying) === 1 || Number(row.ends_in_failure) === 1)
  if (failing.length > 0)
    problems.push({
      rule: 'webhook_failing',
      subject,
      // Not the first attempt: between two attempts, Pombal or the endpoint may have been stopped for long.
      since: null,
      detail: failureDetail(failing.map(({ url }) => url)),
    })
  const givenUp = endpoints.reduce((sum, { given_up }) => sum + Number(given_up), 0)
  if (givenUp > 0)
    problems.push({
      rule: 'events_given_up',
      subject,
      since: null,
      detail: givenUpDetail(Math.min(givenUp, MAX_COUNTED)),
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
  if (hosts.length === 1) return `The webhook at ${first} does not accept events.`
  const others = hosts.length - MAX_HOSTS
  const named = [...hosts.slice(0, MAX_HOSTS), ...(others > 0 ? [`${others} more`] : [])]
  return `The webhooks at ${named.slice(0, -1).join(', ')} and ${named.at(-1)} do not accept events.`
}
