import { sql } from 'kysely'
import type { Redeliverable } from '../../domain/delivery.ts'
import { type EventId, firstEventId, type InstanceId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import { oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import type { RedeliverOutcome } from './deliveries.ts'
import { isLatest, joinLatestDelivery } from './delivery-summary.ts'

/** Events checked in one commit. */
const STEP = 500

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
    (input: { instanceId: InstanceId; eventId: EventId; now: number }) => input.instanceId,
    async (tx, { instanceId, eventId, now }): Promise<RedeliverOutcome> => {
      const instance = await redeliveries.lockInstance(tx, instanceId)
      if (instance === null) return 'no_event'
      const query = db
        .selectFrom('events')
        .leftJoin('deliveries', join =>
          join
            .onRef('deliveries.instance_id', '=', 'events.instance_id')
            .onRef('deliveries.event_id', '=', 'events.id'),
        )
        .select('deliveries.seq as open_seq')
        .where('events.instance_id', '=', instanceId)
        .where('events.id', '=', eventId)
      // The lock keeps retention from erasing the event until the commit.
      const [event] = await tx.query(statements.locking(query, 'key share', 'events'))
      if (event === undefined) return 'no_event'
      if (instance.url === null) return 'no_webhook'
      if (event.open_seq !== null) return 'still_pending'
      await redeliveries.deliver(tx, instanceId, [eventId], instance.url, now)
      return 'queued'
    },
  )
}

export function redeliverSinceOperation(statements: Statements) {
  const { db } = statements
  const redeliveries = new RedeliveryWriter(statements)
  return oneByOne(
    'deliveries.redeliverSince',
    (input: SinceStep) => input.instanceId,
    async (tx, step) => {
      const { instanceId, after, state, now } = step
      const instance = await redeliveries.lockInstance(tx, instanceId)
      if (instance === null || instance.url === null) return { kind: 'no_webhook' as const }
      // Only events created before the call; otherwise a busy instance would never come to an end.
      const query = joinLatestDelivery(db.selectFrom('events'))
        .select(['events.id', 'open.seq as open_seq', 'done.state'])
        .where('events.instance_id', '=', instanceId)
        .where('events.id', '>', after)
        .where('events.id', '<', firstEventId(now + 1))
        .orderBy('events.id')
        .limit(STEP)
      const events = await tx.query(statements.locking(query, 'key share', 'events'))
      const isMatching = (event: (typeof events)[number]) =>
        event.open_seq === null && (event.state ?? 'not_posted') === state
      const matching = events.filter(isMatching).map(event => event.id)
      await redeliveries.deliver(tx, instanceId, matching, instance.url, now)
      const next = events.length < STEP ? null : events.at(-1)!.id
      return { kind: 'queued' as const, count: matching.length, next }
    },
  )
}

/** Creates redeliveries of events that have no unfinished delivery. */
class RedeliveryWriter {
  readonly #statements: Statements
  readonly #supersede
  readonly #insert

  constructor(statements: Statements) {
    this.#statements = statements
    this.#supersede = statements.rows({ instance_id: 'text', event_id: 'text' }, db =>
      db
        .updateTable('finished_deliveries as f')
        .from('input')
        .set({ superseded: 1 })
        .whereRef('f.instance_id', '=', 'input.instance_id')
        .whereRef('f.event_id', '=', 'input.event_id')
        .where(isLatest('f.superseded')),
    )
    this.#insert = statements.insert(
      'deliveries',
      { instance_id: 'text', event_id: 'text', url: 'text', due_at: 'integer' },
      { fixed: { readiness: sql.lit('first'), attempts: sql.lit(0), redelivery: sql.lit(1) } },
    )
  }

  /**
   * Blocks the owner's writes until the commit. New deliveries therefore become visible in the order of their `seq`, and a
   * lane never misses one that is below its cursor.
   */
  async lockInstance(tx: Transaction, instanceId: InstanceId): Promise<{ url: string | null } | null> {
    const { db } = this.#statements
    const lease = db.selectFrom('leases').select('epoch').where('instance_id', '=', instanceId)
    await tx.query(this.#statements.locking(lease, 'update', 'leases'))
    const instance = db
      .selectFrom('instances')
      .select('webhook_url as url')
      .where('id', '=', instanceId)
      .where('deleted_at', 'is', null)
    const [row] = await tx.query(this.#statements.locking(instance, 'share', 'instances'))
    return row ?? null
  }

  async deliver(
    tx: Transaction,
    instanceId: InstanceId,
    eventIds: readonly EventId[],
    url: string,
    now: number,
  ): Promise<void> {
    if (eventIds.length === 0) return
    const rows = eventIds.map(event_id => ({ instance_id: instanceId, event_id, url, due_at: now }))
    await tx.each(this.#supersede, rows)
    await tx.each(this.#insert, rows)
  }
}
