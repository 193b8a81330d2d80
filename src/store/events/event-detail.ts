import { sql } from 'kysely'
import type { Reach } from '../../domain/events/endpoint.ts'
import { otherSideOf } from '../../domain/events/event.ts'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { AttemptRecord, DeliverySummary } from '../deliveries/deliveries.ts'
import type { Core } from '../engine/core.ts'
import { isToOwn, type Readiness } from '../engine/schema/events.ts'
import type { EventDetail } from './events.ts'

type Delivery = DeliverySummary & { log: AttemptRecord[] }

/** Of each, the newest are returned. An event may have thousands, and each attempt is signed again for the answer. */
const MAX_DELIVERIES = 100
const MAX_ATTEMPTS = 100

/** Reads one event with its newest deliveries and their attempts. */
export class EventDetails {
  readonly #core: Core
  readonly #statements

  constructor(core: Core) {
    this.#core = core
    this.#statements = prepare(core)
  }

  async find(instanceId: InstanceId, id: EventId, reach: Reach): Promise<EventDetail | null> {
    const { reader } = this.#core
    const [event] = await reader.run(this.#statements.find, { instanceId, id })
    if (event === undefined) return null
    const rows = await reader.run(this.#statements.listDeliveries, { instanceId, id, all: reach === 'all' ? 1 : 0 })
    const deliveries = rows.map(toDelivery).toSorted((a, b) => Number(a.id) - Number(b.id))
    const bySeq = new Map(deliveries.map(delivery => [delivery.id, delivery]))
    for (const row of await this.#listAttempts(instanceId, id, rows)) {
      bySeq.get(String(row.delivery_seq))?.log.unshift(toAttempt(row))
    }
    return {
      id: event.id,
      kind: event.kind,
      timestamp: event.timestamp,
      createdAt: event.created_at,
      messageId: event.message_id,
      with: otherSideOf(event.body),
      body: event.body,
      delivery: shownOf(deliveries),
      deliveries,
    }
  }

  /** The newest attempts of these deliveries of the event. */
  async #listAttempts(instanceId: InstanceId, id: EventId, deliveries: readonly DeliveryRow[]) {
    if (deliveries.length === 0) return []
    const { reader, statements } = this.#core
    const seqs = deliveries.map(({ seq }) => seq)
    return reader.query(
      statements.db
        .selectFrom('attempts')
        .select(['delivery_seq', 'attempt_number', 'requested_number', 'url', 'started_at', 'duration_ms'])
        .select(['status', 'error', 'response_excerpt'])
        .where('instance_id', '=', instanceId)
        .where('event_id', '=', id)
        .where('delivery_seq', 'in', seqs)
        .orderBy('delivery_seq', 'desc')
        .orderBy(eb => eb.fn.coalesce('requested_number', 'attempt_number'), 'desc')
        .orderBy('started_at', 'desc')
        .orderBy('attempt_number', 'desc')
        .limit(sql.lit(MAX_ATTEMPTS)),
    )
  }
}

function prepare({ statements }: Core) {
  const { db } = statements
  return {
    find: statements.one((p: { instanceId: InstanceId; id: EventId }) =>
      db
        .selectFrom('events')
        .select(['id', 'kind', 'timestamp', 'created_at', 'message_id', 'body'])
        .where('instance_id', '=', p.instanceId)
        .where('id', '=', p.id),
    ),
    // The latest delivery to each endpoint comes first, because the event's state depends on it.
    listDeliveries: statements.one((p: { instanceId: InstanceId; id: EventId; all: number }) =>
      db
        .selectFrom(
          db
            .selectFrom('deliveries')
            .select([
              'seq',
              'endpoint_id',
              'url',
              sql<State>`readiness`.as('state'),
              'attempts',
              'due_at',
              'redelivery',
            ])
            .select(sql<number>`0`.as('superseded'))
            .where('instance_id', '=', p.instanceId)
            .where('event_id', '=', p.id)
            .unionAll(
              db
                .selectFrom('finished_deliveries')
                .select(['seq', 'endpoint_id', 'url', sql<State>`state`.as('state'), 'attempts'])
                .select([sql<number>`null`.as('due_at'), 'redelivery', 'superseded'])
                .where('instance_id', '=', p.instanceId)
                .where('event_id', '=', p.id),
            )
            .as('d'),
        )
        .select(['seq', 'endpoint_id', 'url', 'state', 'attempts', 'due_at', 'redelivery'])
        .where(eb => eb.or([eb(sql<number>`cast(${p.all} as integer)`, '=', 1), isToOwn('d')]))
        .orderBy('superseded')
        .orderBy('seq', 'desc')
        .limit(sql.lit(MAX_DELIVERIES)),
    ),
  }
}

type State = Readiness | 'delivered' | 'exhausted'

interface DeliveryRow {
  seq: number
  endpoint_id: string
  url: string
  state: State
  attempts: number
  due_at: number | null
  redelivery: number
}

function toDelivery(row: DeliveryRow): Delivery {
  const waiting = row.state === 'first' || row.state === 'retry'
  return {
    id: String(row.seq),
    endpointId: row.endpoint_id,
    url: row.url,
    state: row.state === 'first' || row.state === 'retry' ? 'pending' : row.state,
    attempts: row.attempts,
    nextAttemptAt: waiting ? row.due_at : null,
    redelivery: row.redelivery === 1,
    log: [],
  }
}

interface AttemptRow {
  attempt_number: number
  requested_number: number | null
  url: string
  started_at: number
  duration_ms: number
  status: number | null
  error: string | null
  response_excerpt: string | null
}

function toAttempt(row: AttemptRow): AttemptRecord {
  return {
    attemptNumber: row.requested_number ?? row.attempt_number,
    requested: row.requested_number !== null,
    url: row.url,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
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
