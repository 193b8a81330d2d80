import { type RawBuilder, sql } from 'kysely'
import { DEFAULT_ENDPOINT, isSubscribed } from '../../domain/events/endpoint.ts'
import { EVENT_KINDS } from '../../domain/events/event.ts'
import { type EndpointId, type EventId, firstEventId, firstMessageId, type InstanceId } from '../../domain/ids.ts'
import type { MessageState } from '../../domain/message.ts'
import { isLatest, joinLatestDelivery, OWN } from '../deliveries/delivery-summary.ts'
import { isOwnEndpoint, newestGivenUp } from '../deliveries/given-up.ts'
import type { Core } from '../engine/core.ts'
import { TOP } from '../engine/cursor.ts'
import { endedAtOwn, endpointOf, IS_POSTED_BY_DEFAULT, isToOwn, type Readiness } from '../engine/schema/events.ts'
import type { RowsStatement, Statement } from '../engine/statement.ts'
import { eventsOf } from '../events/event-recorder.ts'
import { messageIds } from '../messages/message-ids.ts'
import { type Slice, search } from '../messages/searching.ts'
import { readTroubles } from './attention.ts'
import { readEndpointDeliveries } from './endpoint-deliveries.ts'
import { readFailures, readMessageCounts, readQueued } from './message-counts.ts'
import {
  type DeliveryOutcomes,
  type InstanceActivity,
  type InstanceTrouble,
  LATENCY_BOUNDS_MS,
  MAX_COUNTED,
  MAX_RECENT,
  type Statistics,
  type StoreTotals,
} from './statistics.ts'
import { readTotals } from './totals.ts'

/** Counts for the panel. Each query is bounded by an index range or by a limit. */
/** An event is counted once, but has a redelivery for each endpoint that missed it. Beyond this many rows, the count is too low. */
const MAX_READ_REDELIVERING = 5 * MAX_COUNTED

export class StoredStatistics implements Statistics {
  readonly #core: Core
  readonly #activity
  readonly #outcomes

  constructor(core: Core) {
    this.#core = core
    this.#activity = activityStatement(core)
    this.#outcomes = outcomesStatement(core)
  }

  troubles(givenUpSince: number, reached: readonly InstanceId[] | null = null): Promise<InstanceTrouble[]> {
    return readTroubles(this.#core, givenUpSince, reached)
  }

  totals(): Promise<StoreTotals> {
    return readTotals(this.#core)
  }

  async activity(ids: readonly InstanceId[], since: number, givenUpSince: number): Promise<InstanceActivity[]> {
    const first = {
      first_message: firstMessageId(since),
      first_event: firstEventId(since),
      first_given_up: firstEventId(givenUpSince),
    }
    const rows = await this.#core.reader.each(
      this.#activity,
      ids.map(id => ({ instance_id: id, ...first })),
    )
    return rows.map(row => {
      const pending = [row.first, row.retry, row.blocked].filter(at => at !== null)
      return {
        instanceId: row.instance_id,
        sent: Number(row.settled) - Number(row.failed),
        failed: Number(row.failed),
        queued: Number(row.queued),
        received: Number(row.received),
        oldestUndeliveredAt: pending.length === 0 ? null : Math.min(...pending),
        deliveries: {
          retrying: Number(row.retrying),
          givenUp: Number(row.given_up),
          lastDeliveredAt: row.last_delivered,
          lastGivenUpAt: row.last_given_up,
        },
      }
    })
  }

  endpoints(instanceId: InstanceId, endpointIds: readonly EndpointId[], givenUpSince: number) {
    return readEndpointDeliveries(this.#core, instanceId, endpointIds, givenUpSince)
  }

  messages(instanceId: InstanceId, since: number, until: number) {
    return readMessageCounts(this.#core, instanceId, since, until)
  }

  queued(instanceId: InstanceId, bounds: readonly number[]) {
    return readQueued(this.#core, instanceId, bounds)
  }

  failures(instanceId: InstanceId, since: number) {
    return readFailures(this.#core, instanceId, since)
  }

  async outcomes(instanceId: InstanceId, since: number, until: number): Promise<DeliveryOutcomes> {
    const range = { from: firstEventId(since), below: firstEventId(until) }
    const [row] = await this.#core.reader.run(this.#outcomes, { instanceId, ...range })
    const count = (name: string) => Number(row?.[name] ?? 0)
    return {
      first: count('first'),
      retried: count('retried'),
      redelivered: count('redelivered'),
      exhausted: count('exhausted'),
      waiting: count('waiting'),
      notPosted: count('not_posted'),
      latencies: Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, index) => ({
        count: count(`latency_${index}`),
        longestMs: count(`longest_${index}`),
      })),
    }
  }

  async countEnded(instanceId: InstanceId, since: number, state: 'delivered' | 'exhausted'): Promise<number> {
    const { reader, statements } = this.#core
    const receivers = await this.#receivers(instanceId)
    if (receivers.length === 0) return 0
    const ended = ({ below, from }: Slice) =>
      statements.db
        .selectFrom('finished_deliveries as f')
        .select('f.event_id')
        .where('f.instance_id', '=', instanceId)
        .where('f.state', '=', state)
        .where('f.superseded', '=', sql.lit(0))
        .where('f.event_id', '<', below)
        .where('f.event_id', '>=', from)
    const edge = async (slice: Slice, distance: number) => {
      const [row] = await reader.query(ended(slice).orderBy('f.event_id', 'desc').offset(distance).limit(1))
      return row?.event_id ?? null
    }
    const find = (slice: Slice, limit: number) =>
      reader.query(
        ended(slice)
          .distinct()
          .where(
            endpointOf('f'),
            'in',
            receivers.map(({ id }) => id),
          )
          .limit(limit),
      )
    return (await search(instanceId, { below: TOP, from: firstEventId(since) }, MAX_COUNTED, edge, find)).length
  }

  async countNotPosted(instanceId: InstanceId, since: number): Promise<number> {
    const { reader, statements } = this.#core
    const receivers = await this.#receivers(instanceId)
    const kinds = EVENT_KINDS.filter(kind => receivers.some(({ events }) => isSubscribed(eventsOf(events), kind)))
    if (kinds.length === 0) return 0
    const events = ({ below, from }: Slice) =>
      joinLatestDelivery(statements.db.selectFrom('events'))
        .select('events.id')
        .where('events.instance_id', '=', instanceId)
        .where('events.id', '<', below)
        .where('events.id', '>=', from)
        .orderBy('events.id', 'desc')
    const edge = async (slice: Slice, distance: number) => {
      const [row] = await reader.query(events(slice).offset(distance).limit(1))
      return row?.id ?? null
    }
    const find = (slice: Slice, limit: number) =>
      reader.query(
        events(slice)
          .where('open.seq', 'is', null)
          .where('done.seq', 'is', null)
          .where('events.kind', 'in', kinds)
          .limit(limit),
      )
    const found = await search(instanceId, { below: TOP, from: firstEventId(since) }, MAX_COUNTED, edge, find)
    return found.length
  }

  async countRedelivering(instanceId: InstanceId): Promise<number> {
    const { reader, statements } = this.#core
    const open = statements.db
      .selectFrom('deliveries')
      .select('event_id')
      .where('instance_id', '=', instanceId)
      .where('redelivery', '=', sql.lit(1))
      .limit(MAX_READ_REDELIVERING)
    const [row] = await reader.query(
      statements.db.selectFrom(open.as('found')).select(sql<number>`count(distinct event_id)`.as('count')),
    )
    return Math.min(Number(row?.count ?? 0), MAX_COUNTED)
  }

  /** The endpoints that `redeliverSince` reaches, with their stored filters. */
  #receivers(instanceId: InstanceId) {
    const { db } = this.#core.statements
    return this.#core.reader.query(
      db
        .selectFrom('instances')
        .select([sql<string>`${sql.lit(DEFAULT_ENDPOINT)}`.as('id'), 'webhook_events as events'])
        .where('id', '=', instanceId)
        .where('webhook_url', 'is not', null)
        .unionAll(
          db
            .selectFrom('endpoints')
            .select(['id', 'events'])
            .where('instance_id', '=', instanceId)
            .where('deleted_at', 'is', null),
        )
        .unionAll(db.selectFrom('operator_endpoints').select(['id', 'events']).where('deleted_at', 'is', null)),
    )
  }
}

type ActivityInput = { instance_id: string; first_message: string; first_event: string; first_given_up: string }
type MessageCounts = Record<'settled' | 'failed' | 'queued' | 'received', number>
type ActivityRow = { instance_id: string } & MessageCounts &
  Record<Readiness, number | null> & {
    retrying: number
    given_up: number
    last_delivered: number | null
    last_given_up: number | null
  }

function activityStatement({ statements }: Core): RowsStatement<ActivityInput, ActivityRow> {
  const messages = (state: MessageState) =>
    sql<number>`(select count(*) from ${messageIds(sql`input.instance_id`, sql`id >= input.first_message`, state)} ids)`
  const received = sql<number>`(select count(*) from events e
    where e.instance_id = input.instance_id and e.id >= input.first_event and e.kind = 'message.received')`
  const retrying = counted(sql`deliveries d where d.instance_id = input.instance_id and d.readiness = 'retry'
    and ${isToOwn('d')}`)
  const instance = sql`input.instance_id`
  const given = sql`${ended('exhausted')} and f.event_id >= input.first_given_up`
  // Reads the endpoint of each delivery, which takes ten times longer.
  const givenUpAtPresent = sql`${newestGivenUp(instance, sql`input.first_given_up`)} as f
    where ${isOwnEndpoint(instance, sql`f.endpoint_id`)}`
  const byEndpoints = <T>(of: (events: RawBuilder<unknown>) => RawBuilder<T>) =>
    sql<T>`case when ${areEndpointsGone} then ${of(givenUpAtPresent)} else ${of(given)} end`
  const columns = { instance_id: 'text', first_message: 'text', first_event: 'text', first_given_up: 'text' } as const
  return statements.rows(columns, db =>
    db
      .selectFrom('input')
      .select('input.instance_id')
      .select([
        // All that are no longer queued: the states of sent messages share an index.
        messages('sent').as('settled'),
        messages('failed').as('failed'),
        messages('queued').as('queued'),
        received.as('received'),
        oldestFirst.as('first'),
        oldest('retry').as('retry'),
        oldest('blocked').as('blocked'),
        retrying.as('retrying'),
        byEndpoints(events => counted(events, sql`distinct f.event_id`)).as('given_up'),
        lastEnd(ended('delivered')).as('last_delivered'),
        byEndpoints(lastEnd).as('last_given_up'),
      ]),
  )
}

function counted(rows: RawBuilder<unknown>, each = sql`1`): RawBuilder<number> {
  return sql<number>`(select count(*) from (select ${each} from ${rows} limit ${sql.lit(MAX_RECENT)}) as counted)`
}

/** The events of an instance whose latest delivery ended in `state`, through their partial index. Includes deleted endpoints. */
function ended(state: 'delivered' | 'exhausted'): RawBuilder<unknown> {
  return sql`finished_deliveries f
    where f.instance_id = input.instance_id and f.state = ${sql.lit(state)} and f.superseded = 0 and ${endedAtOwn('f')}`
}

/** Whether an endpoint of the instance was deleted, whose deliveries may still be stored. */
const areEndpointsGone = sql`(exists (select 1 from endpoints as gone
    where gone.instance_id = input.instance_id and gone.deleted_at is not null)
  or exists (select 1 from instances as own where own.id = input.instance_id and own.webhook_url is null))`

/** When the last attempt of the newest of these events ended. Uses indexed columns only, so that SQLite does not read the table. */
function lastEnd(events: RawBuilder<unknown>): RawBuilder<number | null> {
  const attemptEnd = sql`(select a.started_at + a.duration_ms from attempts a
    where a.instance_id = input.instance_id and a.event_id = f.event_id
      and a.delivery_seq = f.seq order by a.attempt_number desc limit 1)`
  return sql<number | null>`(select ${attemptEnd} from ${events} order by f.event_id desc limit 1)`
}

/** The creation time of the oldest event with a delivery of this readiness. Usually few deliveries have it. */
function oldest(readiness: Exclude<Readiness, 'first'>): RawBuilder<number | null> {
  return sql<number | null>`(select e.created_at from deliveries d
    join events e on e.instance_id = d.instance_id and e.id = d.event_id
    where d.instance_id = input.instance_id and d.readiness = ${sql.lit(readiness)} and ${isToOwn('d')} order by d.event_id limit 1)`
}

/** The same for first attempts, by the index of each endpoint. */
const oldestFirst = sql<number | null>`(select min((select e.created_at from deliveries d
    join events e on e.instance_id = d.instance_id and e.id = d.event_id
    where d.instance_id = input.instance_id and d.endpoint_id = ids.id and d.readiness = 'first' order by d.seq limit 1))
  from (select ${sql.lit(DEFAULT_ENDPOINT)} as id
    union all select id from endpoints where instance_id = input.instance_id) as ids)`

interface OutcomesInput {
  instanceId: InstanceId
  from: EventId
  below: EventId
}

function outcomesStatement({ statements }: Core) {
  const { db } = statements
  const sum = (condition: RawBuilder<unknown>) => sql<number>`sum(case when ${condition} then 1 else 0 end)`
  const latency = sql`(a.started_at + a.duration_ms - events.created_at)`
  const isDelivered = sql`done.state = 'delivered' and open.seq is null`
  const isTimely = sql`${isDelivered} and done.redelivery = 0`
  // Another endpoint may still wait for the event, or have refused it.
  const timed = sql<number>`(select f.seq from finished_deliveries as f
    where f.instance_id = events.instance_id and f.event_id = events.id and ${isLatest('f.superseded')}
      and f.state = 'delivered' and f.redelivery = 0 and ${isToOwn('f')} order by f.seq limit 1)`
  const latencies = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, index) => index).flatMap(index => {
    const above =
      index === 0 ? sql`a.attempt_number is not null` : sql`${latency} > ${sql.lit(LATENCY_BOUNDS_MS[index - 1])}`
    const bound = LATENCY_BOUNDS_MS[index]
    const within = bound === undefined ? sql`1 = 1` : sql`${latency} <= ${sql.lit(bound)}`
    const isHere = sql`${above} and ${within}`
    const longest = sql<number | null>`max(case when ${isHere} then ${latency} end)`
    return [sum(isHere).as(`latency_${index}`), longest.as(`longest_${index}`)]
  })
  return statements.one((p: OutcomesInput) =>
    joinLatestDelivery(db.selectFrom('events'), undefined, OWN)
      .leftJoin('finished_deliveries as timed', join =>
        join
          .onRef('timed.instance_id', '=', 'events.instance_id')
          .onRef('timed.event_id', '=', 'events.id')
          .on('timed.seq', '=', timed),
      )
      .leftJoin('attempts as a', join =>
        join
          .onRef('a.instance_id', '=', 'timed.instance_id')
          .onRef('a.event_id', '=', 'timed.event_id')
          .onRef('a.delivery_seq', '=', 'timed.seq')
          .onRef('a.attempt_number', '=', 'timed.attempts'),
      )
      .select([
        sum(sql`${isTimely} and done.attempts = 1`).as('first'),
        sum(sql`${isTimely} and done.attempts > 1`).as('retried'),
        sum(sql`${isDelivered} and done.redelivery = 1`).as('redelivered'),
        sum(sql`done.state = 'exhausted'`).as('exhausted'),
        sum(sql`open.seq is not null and (done.state is null or done.state = 'delivered')`).as('waiting'),
        sum(sql`open.seq is null and done.seq is null and ${IS_POSTED_BY_DEFAULT}`).as('not_posted'),
        ...latencies,
      ])
      .where('events.instance_id', '=', p.instanceId)
      .where('events.id', '>=', p.from)
      .where('events.id', '<', p.below),
  ) as Statement<OutcomesInput, Record<string, number | string | null>>
}
