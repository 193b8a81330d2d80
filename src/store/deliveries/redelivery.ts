import { sql } from 'kysely'
import { MAX_DELIVERIES_OF_EVENT, type Redeliverable } from '../../domain/events/delivery.ts'
import { isOperatorEndpoint, isSubscribed, OPERATOR_EVENT_KINDS, type Reach } from '../../domain/events/endpoint.ts'
import type { EventKind } from '../../domain/events/event.ts'
import type { EndpointId, EventId, InstanceId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import { oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import { type Subscription, Subscriptions } from '../events/event-recorder.ts'
import type { RedeliverOutcome } from './deliveries.ts'
import { isLatest } from './delivery-summary.ts'

/** Events checked in one commit. */
const STEP = 500

interface Redelivery {
  instanceId: InstanceId
  eventId: EventId
  endpointId?: EndpointId | undefined
  now: number
  reach: Reach
}

export interface SinceStep {
  instanceId: InstanceId
  /** The last event of the previous step. */
  after: EventId
  state: Redeliverable
  now: number
}

export function redeliverOperation(statements: Statements) {
  const { db } = statements
  const redeliveries = new RedeliveryWriter(statements)
  return oneByOne(
    'deliveries.redeliver',
    (input: Redelivery) => input.instanceId,
    async (tx, { instanceId, eventId, endpointId, now, reach }): Promise<RedeliverOutcome> => {
      const endpoints = await redeliveries.lockEndpoints(tx, instanceId, reach)
      if (endpoints === null) return 'no_event'
      const query = db
        .selectFrom('events')
        .select('kind')
        .where('instance_id', '=', instanceId)
        .where('id', '=', eventId)
      // The lock keeps retention from erasing the event until the commit.
      const [event] = await tx.query(statements.locking(query, 'key share', 'events'))
      if (event === undefined) return 'no_event'
      const wanted = endpoints.filter(({ id, events }) =>
        endpointId === undefined ? isSubscribed(events, event.kind) : id === endpointId && mayReceive(id, event.kind),
      )
      if (wanted.length === 0) return endpointId === undefined ? 'no_webhook' : 'no_endpoint'
      const open = await redeliveries.findOpen(tx, instanceId, [eventId])
      const free = wanted.filter(({ id }) => !open.has(`${eventId}/${id}`))
      const full = await redeliveries.findFull(tx, instanceId, eventId)
      const allowed = free.filter(({ id }) => !full.has(id))
      await redeliveries.deliver(
        tx,
        allowed.map(({ id, url }) => ({
          instance_id: instanceId,
          event_id: eventId,
          endpoint_id: id,
          url,
          due_at: now,
        })),
      )
      if (allowed.length > 0) return 'queued'
      return free.length > 0 ? 'too_many' : 'still_pending'
    },
    outcome => outcome === 'queued',
  )
}

export function redeliverSinceOperation(statements: Statements) {
  const { db } = statements
  const redeliveries = new RedeliveryWriter(statements)
  return oneByOne(
    'deliveries.redeliverSince',
    (input: SinceStep) => input.instanceId,
    async (tx, { instanceId, after, state, now }) => {
      const endpoints = (await redeliveries.lockEndpoints(tx, instanceId, 'all')) ?? []
      const hasOwnEndpoint = endpoints.some(({ id }) => !isOperatorEndpoint(id))
      if (endpoints.length === 0) return { hasOwnEndpoint, count: 0, next: null }
      // Without an upper limit, because the clock may have been ahead when an event was created. The call still ends: even a busy
      // instance creates fewer than `STEP` events between two steps.
      const query = db
        .selectFrom('events')
        .select(['id', 'kind'])
        .where('instance_id', '=', instanceId)
        .where('id', '>', after)
        .orderBy('id')
        .limit(STEP)
      const events = await tx.query(statements.locking(query, 'key share', 'events'))
      const ids = events.map(({ id }) => id)
      const [open, ended] = await Promise.all([
        redeliveries.findOpen(tx, instanceId, ids),
        redeliveries.findEnded(tx, instanceId, ids),
      ])
      const posted = new Set([...open, ...ended.keys()].map(key => key.split('/')[0]))
      const matching = events.flatMap(({ id: event_id, kind }) =>
        endpoints
          .filter(endpoint => {
            const key = keyOf({ event_id, endpoint_id: endpoint.id })
            if (state === 'not_posted') return !posted.has(event_id) && isSubscribed(endpoint.events, kind)
            return !open.has(key) && ended.get(key) === state
          })
          .map(({ id, url }) => ({ instance_id: instanceId, event_id, endpoint_id: id, url, due_at: now })),
      )
      await redeliveries.deliver(tx, matching)
      const { size: count } = new Set(matching.map(({ event_id }) => event_id))
      return { hasOwnEndpoint, count, next: ids.length < STEP ? null : ids.at(-1)! }
    },
    ({ count }) => count > 0,
  )
}

interface NewRedelivery {
  instance_id: InstanceId
  event_id: EventId
  endpoint_id: EndpointId
  url: string
  due_at: number
}

/** Creates redeliveries to endpoints that have no unfinished delivery of the event. */
class RedeliveryWriter {
  readonly #statements: Statements
  readonly #subscriptions: Subscriptions
  readonly #supersede
  readonly #insert
  readonly #findOpen
  readonly #findEnded

  constructor(statements: Statements) {
    this.#statements = statements
    this.#subscriptions = new Subscriptions(statements)
    const event = { instance_id: 'text', event_id: 'text' } as const
    this.#findOpen = statements.find('deliveries', event, ['event_id', 'endpoint_id'])
    this.#findEnded = statements.find('finished_deliveries', event, ['event_id', 'endpoint_id', 'state'], {
      where: isLatest('finished_deliveries.superseded'),
    })
    this.#supersede = statements.rows({ ...event, endpoint_id: 'text' }, db =>
      db
        .updateTable('finished_deliveries as f')
        .from('input')
        .set({ superseded: 1 })
        .whereRef('f.instance_id', '=', 'input.instance_id')
        .whereRef('f.event_id', '=', 'input.event_id')
        .whereRef('f.endpoint_id', '=', 'input.endpoint_id')
        .where(isLatest('f.superseded')),
    )
    this.#insert = statements.insert(
      'deliveries',
      { ...event, endpoint_id: 'text', url: 'text', due_at: 'integer' },
      { fixed: { readiness: sql.lit('first'), attempts: sql.lit(0), redelivery: sql.lit(1) } },
    )
  }

  /**
   * Locks the instance, as `EventRecorder` does, until the commit. New deliveries therefore become visible in the order of their
   * `seq`, so none appears below a lane's cursor, where the lane would miss it. Lease renewals do not wait for this
   * lock.
   */
  async lockEndpoints(tx: Transaction, instanceId: InstanceId, reach: Reach): Promise<Subscription[] | null> {
    const { db } = this.#statements
    const instance = db
      .selectFrom('instances')
      .select('id')
      .where('id', '=', instanceId)
      .where('deleted_at', 'is', null)
    if ((await tx.query(this.#statements.locking(instance, 'no key update', 'instances'))).length === 0) return null
    return (await this.#subscriptions.find(tx, [instanceId], reach)).get(instanceId) ?? []
  }

  findOpen(tx: Transaction, instance_id: InstanceId, events: readonly EventId[]): Promise<Set<string>> {
    const keys = events.map(event_id => ({ instance_id, event_id }))
    return tx.each(this.#findOpen, keys).then(rows => new Set(rows.map(keyOf)))
  }

  /** Endpoints to which the event may not be redelivered again. */
  async findFull(tx: Transaction, instanceId: InstanceId, eventId: EventId): Promise<Set<EndpointId>> {
    const query = this.#statements.db
      .selectFrom('finished_deliveries')
      .select('endpoint_id')
      .where('instance_id', '=', instanceId)
      .where('event_id', '=', eventId)
      .groupBy('endpoint_id')
      .having(eb => eb.fn.countAll(), '>=', sql.lit(MAX_DELIVERIES_OF_EVENT))
    return new Set((await tx.query(query)).map(({ endpoint_id }) => endpoint_id))
  }

  /** @returns the state of the latest finished delivery by event and endpoint */
  async findEnded(tx: Transaction, instance_id: InstanceId, events: readonly EventId[]) {
    const keys = events.map(event_id => ({ instance_id, event_id }))
    const rows = await tx.each(this.#findEnded, keys)
    return new Map(rows.map(row => [keyOf(row), row.state]))
  }

  async deliver(tx: Transaction, rows: readonly NewRedelivery[]): Promise<void> {
    if (rows.length === 0) return
    await tx.each(this.#supersede, rows)
    await tx.each(this.#insert, rows)
  }
}

function keyOf({ event_id, endpoint_id }: { event_id: EventId; endpoint_id: EndpointId }): string {
  return `${event_id}/${endpoint_id}`
}

/** Operator endpoints receive only events about connections, even if a caller names the endpoint. */
function mayReceive(endpointId: EndpointId, kind: EventKind): boolean {
  return !isOperatorEndpoint(endpointId) || OPERATOR_EVENT_KINDS.has(kind)
}
