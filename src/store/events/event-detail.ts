import { sql } from 'kysely'
import { isOperatorEndpoint, type Reach } from '../../domain/events/endpoint.ts'
import { otherSideOf } from '../../domain/events/event.ts'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { AttemptRecord, DeliverySummary } from '../deliveries/deliveries.ts'
import type { Core } from '../engine/core.ts'
import type { Readiness } from '../engine/schema/events.ts'
import type { EventDetail } from './events.ts'

type Delivery = DeliverySummary & { log: AttemptRecord[] }

/** Reads one event with all its deliveries and their attempts. */
export class EventDetails {
  readonly #core: Core
  readonly #find

  constructor(core: Core) {
    this.#core = core
    this.#find = prepare(core)
  }

  async find(instanceId: InstanceId, id: EventId, reach: Reach): Promise<EventDetail | null> {
    const rows = await this.#core.reader.run(this.#find, { instanceId, id })
    const [event] = rows
    if (event === undefined) return null
    const deliveries = new Map<number, Delivery>()
    for (const row of rows) {
      if (row.seq === null) continue
      const delivery = deliveries.get(row.seq) ?? toDelivery({ ...row, seq: row.seq })
      deliveries.set(row.seq, delivery)
      if (row.attempt_number !== null) delivery.log.push(toAttempt({ ...row, attempt_number: row.attempt_number }))
    }
    const all = [...deliveries.values()].filter(delivery => reach === 'all' || !isOperatorEndpoint(delivery.endpointId))
    return {
      id: event.id,
      kind: event.kind,
      timestamp: event.timestamp,
      createdAt: event.created_at,
      messageId: event.message_id,
      with: otherSideOf(event.body),
      body: event.body,
      delivery: shownOf(all),
      deliveries: all,
    }
  }
}

function prepare({ statements }: Core) {
  const { db } = statements
  return statements.one((p: { instanceId: InstanceId; id: EventId }) =>
    db
      .with('all_deliveries', qb =>
        qb
          .selectFrom('deliveries')
          .select(['seq', 'endpoint_id', 'url', sql<State>`readiness`.as('state'), 'attempts', 'due_at', 'redelivery'])
          .where('instance_id', '=', p.instanceId)
          .where('event_id', '=', p.id)
          .unionAll(
            qb
              .selectFrom('finished_deliveries')
              .select([
                'seq',
                'endpoint_id',
                'url',
                sql<State>`state`.as('state'),
                'attempts',
                sql<number>`null`.as('due_at'),
                'redelivery',
              ])
              .where('instance_id', '=', p.instanceId)
              .where('event_id', '=', p.id),
          ),
      )
      .selectFrom('events')
      .leftJoin('all_deliveries', join => join.onTrue())
      .leftJoin('attempts', join =>
        join
          .onRef('attempts.instance_id', '=', 'events.instance_id')
          .onRef('attempts.event_id', '=', 'events.id')
          .onRef('attempts.delivery_seq', '=', 'all_deliveries.seq'),
      )
      .select(['events.id', 'events.kind', 'events.timestamp', 'events.created_at', 'events.message_id', 'events.body'])
      .select([
        'all_deliveries.seq',
        'all_deliveries.endpoint_id',
        'all_deliveries.url',
        'all_deliveries.state',
        'all_deliveries.attempts',
        'all_deliveries.due_at',
        'all_deliveries.redelivery',
      ])
      .select(['attempts.attempt_number', 'attempts.url as attempt_url', 'attempts.started_at', 'attempts.duration_ms'])
      .select('attempts.requested_number')
      .select(['attempts.status', 'attempts.error', 'attempts.response_excerpt'])
      .where('events.instance_id', '=', p.instanceId)
      .where('events.id', '=', p.id)
      .orderBy('all_deliveries.seq')
      .orderBy(eb => eb.fn.coalesce('attempts.requested_number', 'attempts.attempt_number'))
      .orderBy('attempts.started_at'),
  )
}

type State = Readiness | 'delivered' | 'exhausted'

interface DeliveryRow {
  seq: number
  endpoint_id: string | null
  url: string | null
  state: State | null
  attempts: number | null
  due_at: number | null
  redelivery: number | null
}

function toDelivery(row: DeliveryRow): Delivery {
  const waiting = row.state === 'first' || row.state === 'retry'
  return {
    id: String(row.seq),
    endpointId: row.endpoint_id!,
    url: row.url!,
    state: row.state === 'first' || row.state === 'retry' ? 'pending' : row.state!,
    attempts: row.attempts!,
    nextAttemptAt: waiting ? row.due_at : null,
    redelivery: row.redelivery === 1,
    log: [],
  }
}

interface AttemptRow {
  attempt_number: number
  requested_number: number | null
  attempt_url: string | null
  started_at: number | null
  duration_ms: number | null
  status: number | null
  error: string | null
  response_excerpt: string | null
}

function toAttempt(row: AttemptRow): AttemptRecord {
  return {
    attemptNumber: row.requested_number ?? row.attempt_number,
    requested: row.requested_number !== null,
    url: row.attempt_url!,
    startedAt: row.started_at!,
    durationMs: row.duration_ms!,
    status: row.status,
    error: row.error,
    responseExcerpt: row.response_excerpt,
  }
}

/** The delivery that a list would show for the event (`toSummary`). @param all oldest first */
function shownOf(all: readonly Delivery[]): DeliverySummary | null {
  const latest = [...new Map(all.map(delivery => [delivery.endpointId, delivery])).values()]
  const [shown] = latest.toSorted((a, b) => rankOf(a) - rankOf(b) || Number(a.id) - Number(b.id))
  if (shown === undefined) return null
  const { log: _, ...summary } = shown
  return summary
}

function rankOf({ state, attempts }: Delivery): number {
  if (state === 'exhausted') return 0
  if (state === 'pending') return attempts > 0 ? 1 : 2
  return state === 'blocked' ? 3 : 4
}
