import { sql } from 'kysely'
import type { AfterAttempt, Redeliverable } from '../../domain/events/delivery.ts'
import { DEFAULT_ENDPOINT, type Reach } from '../../domain/events/endpoint.ts'
import type { EventKind } from '../../domain/events/event.ts'
import { type EndpointId, type EventId, firstEventId, type InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import type { Operation } from '../engine/operation.ts'
import type { Readiness } from '../engine/schema/events.ts'
import type { Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'
import { type AttemptInput, attemptOperation } from './attempts.ts'
import type { AttemptRecord, Deliveries, DueDelivery, RedeliverOutcome, RetryOutcome } from './deliveries.ts'
import { redeliverOperation, redeliverSinceOperation, type SinceStep } from './redelivery.ts'
import { retryAllOperation, retryOperation } from './retry-now.ts'

interface DueRow {
  seq: number
  instance_id: string
  event_id: string
  endpoint_id: string
  message_id: string | null
  kind: EventKind
  url: string
  body: string
  traceparent: string | null
  attempts: number
  due_at: number
  failed_at: number | null
  requested_at: number | null
  scheduled_at: number | null
}

export class StoredDeliveries implements Deliveries {
  readonly #core: Core
  readonly #statements
  readonly #record: Operation<AttemptInput, { unblocked: boolean }>
  /** Records attempts that will be retried. It changes only the delivery's own rows. */
  readonly #recordRetried: Operation<AttemptInput, { unblocked: boolean }>
  readonly #redeliver
  readonly #redeliverSince
  readonly #retry
  readonly #retryAll

  constructor(core: Core) {
    this.#core = core
    this.#statements = prepare(core.statements)
    this.#record = attemptOperation(core.statements)
    // If a power failure undoes the record, the attempt is made again, as after a kill just before the record.
    this.#recordRetried = { ...this.#record, isIndependent: true, mayBeUndone: true }
    this.#redeliver = redeliverOperation(core.statements)
    this.#redeliverSince = redeliverSinceOperation(core.statements)
    this.#retry = retryOperation(core.statements)
    this.#retryAll = retryAllOperation(core.statements)
  }

  async listFirst(
    instanceId: InstanceId,
    afterSeq: number,
    limit: number,
    endpointId: EndpointId = DEFAULT_ENDPOINT,
  ): Promise<DueDelivery[]> {
    const rows = await this.#core.reader.run(this.#statements.listFirst, { instanceId, endpointId, afterSeq, limit })
    return rows.map(toDue)
  }

  async listRetries(
    instanceId: InstanceId,
    limit: number,
    endpointId: EndpointId = DEFAULT_ENDPOINT,
  ): Promise<DueDelivery[]> {
    const rows = await this.#core.reader.run(this.#statements.listRetries, { instanceId, endpointId, limit })
    return rows.map(toDue)
  }

  async recordAttempt(lease: Lease, delivery: DueDelivery, attempt: AttemptRecord, then: AfterAttempt): Promise<void> {
    const operation = then.kind === 'retry' ? this.#recordRetried : this.#record
    const { unblocked } = await this.#core.write(operation, { lease, delivery, attempt, then })
    if (unblocked) this.#core.hints.publish('deliveries', lease.instanceId, delivery.endpointId)
    this.#core.hints.publish('log', lease.instanceId)
  }

  async redeliver(
    instanceId: InstanceId,
    eventId: EventId,
    now: number,
    endpointId?: EndpointId,
    reach: Reach = 'own',
  ): Promise<RedeliverOutcome> {
    const outcome = await this.#core.write(this.#redeliver, { instanceId, eventId, endpointId, now, reach })
    if (outcome === 'queued') this.#hintRedeliveries(instanceId, reach)
    return outcome
  }

  async redeliverSince(
    instanceId: InstanceId,
    since: number,
    state: Redeliverable,
    now: number,
  ): Promise<{ kind: 'queued'; count: number } | { kind: 'no_webhook' }> {
    let count = 0
    let hasOwnEndpoint = false
    let after: EventId | null = firstEventId(since)
    while (after !== null) {
      const step: SinceStep = { instanceId, after, state, now }
      const done = await this.#core.write(this.#redeliverSince, step)
      hasOwnEndpoint ||= done.hasOwnEndpoint
      count += done.count
      after = done.next
      if (done.count > 0) this.#hintRedeliveries(instanceId, 'all')
    }
    return count > 0 || hasOwnEndpoint ? { kind: 'queued', count } : { kind: 'no_webhook' }
  }

  async retryNow(
    instanceId: InstanceId,
    eventId: EventId,
    seq: number,
    now: number,
    reach: Reach = 'own',
  ): Promise<RetryOutcome> {
    const outcome = await this.#core.write(this.#retry, { instanceId, eventId, seq, now: Math.floor(now), reach })
    if (outcome.kind === 'requested') this.#hintRetries(instanceId)
    return outcome
  }

  async retryAllNow(instanceId: InstanceId, endpointId: EndpointId, steadyNow: number): Promise<number> {
    const now = Math.floor(steadyNow)
    let count = 0
    let after: { due_at: number; seq: number } | null = { due_at: now, seq: 0 }
    while (after !== null) {
      const step: { count: number; next: { due_at: number; seq: number } | null } = await this.#core.write(
        this.#retryAll,
        {
          instanceId,
          endpointId,
          after,
          now,
        },
      )
      count += step.count
      after = step.next
    }
    // Published after the last step, so that the lane does not start in the middle of the order.
    if (count > 0) this.#hintRetries(instanceId)
    return count
  }

  /** An operator endpoint has a lane only while it has deliveries. The hint `webhook` opens the lane. */
  #hintRedeliveries(instanceId: InstanceId, reach: Reach): void {
    this.#core.hints.publish('deliveries', instanceId)
    if (reach === 'all') this.#core.hints.publish('webhook', instanceId)
    this.#core.hints.publish('log', instanceId)
  }

  #hintRetries(instanceId: InstanceId): void {
    this.#core.hints.publish('webhook', instanceId)
    this.#core.hints.publish('log', instanceId)
  }
}

function prepare(statements: Statements) {
  // A literal, not a parameter: SQLite uses a partial index only if the query states the index's condition.
  const ready = (readiness: Readiness) => sql<boolean>`deliveries.readiness = ${sql.lit(readiness)}`
  const due = statements.db
    .selectFrom('deliveries')
    .innerJoin('events', join =>
      join
        // The expression makes PostgreSQL look each event up by its ID. While its statistics say that the tables are empty, it
        // would otherwise plan to read all events of the instance, and keep this plan until it has analyzed the tables.
        .on('events.instance_id', '=', sql`deliveries.instance_id || ''`)
        .onRef('events.id', '=', 'deliveries.event_id'),
    )
    .select([
      'deliveries.seq',
      'deliveries.instance_id',
      'deliveries.event_id',
      'deliveries.endpoint_id',
      'deliveries.url',
    ])
    .select(['deliveries.attempts', 'deliveries.due_at', 'deliveries.failed_at'])
    .select(['deliveries.requested_at', 'deliveries.scheduled_at', 'events.kind', 'events.message_id', 'events.body'])
    .select('events.traceparent')

  return {
    listFirst: statements.one(
      (p: { instanceId: InstanceId; endpointId: EndpointId; afterSeq: number; limit: number }) =>
        due
          .where('deliveries.instance_id', '=', p.instanceId)
          .where('deliveries.endpoint_id', '=', p.endpointId)
          .where(ready('first'))
          .where('deliveries.seq', '>', p.afterSeq)
          .orderBy('deliveries.seq')
          .limit(p.limit),
    ),

    listRetries: statements.one((p: { instanceId: InstanceId; endpointId: EndpointId; limit: number }) =>
      due
        .where('deliveries.instance_id', '=', p.instanceId)
        .where('deliveries.endpoint_id', '=', p.endpointId)
        .where(ready('retry'))
        .orderBy('deliveries.due_at')
        .orderBy('deliveries.seq')
        .limit(p.limit),
    ),
  }
}

function toDue(row: DueRow): DueDelivery {
  const { requested_at: at, scheduled_at: scheduledAt } = row
  // A node of the previous version does not clear `scheduled_at`, but moves `due_at` beyond it.
  const isRequested = at !== null && scheduledAt !== null && scheduledAt > row.due_at
  return {
    seq: row.seq,
    instanceId: row.instance_id,
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    messageId: row.message_id,
    kind: row.kind,
    url: row.url,
    body: Buffer.from(row.body),
    traceparent: row.traceparent,
    attemptNumber: row.attempts + 1,
    dueAt: row.due_at,
    failedAt: row.failed_at,
    requested: isRequested ? { at, scheduledAt } : null,
  }
}
