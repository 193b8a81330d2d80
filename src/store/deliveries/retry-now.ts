import { sql } from 'kysely'
import type { Reach } from '../../domain/events/endpoint.ts'
import type { EndpointId, EventId, InstanceId } from '../../domain/ids.ts'
import { oneByOne } from '../engine/operation.ts'
import { isToOwn } from '../engine/schema/events.ts'
import type { Statements } from '../engine/statement.ts'
import type { RetryOutcome } from './deliveries.ts'

/** The shortest time between two requests to retry the same delivery. */
const RETRY_NOW_EVERY_MS = 10_000
/** Deliveries in one commit. */
const STEP = 500

/**
 * A request makes the next attempt due immediately and keeps the time of the scheduled attempt. Both times are in the
 * row, so a crash loses neither. The record of the requested attempt restores the schedule.
 */
function updateStatement(statements: Statements) {
  return statements.update(
    'deliveries',
    { instance_id: 'text', event_id: 'text', endpoint_id: 'text' },
    { requested_at: 'integer' },
    { fixed: { scheduled_at: sql.ref('deliveries.due_at'), due_at: sql.ref('input.requested_at') } },
  )
}

interface Requested {
  instanceId: InstanceId
  eventId: EventId
  seq: number
  now: number
  reach: Reach
}

export function retryOperation(statements: Statements) {
  const { db } = statements
  const update = updateStatement(statements)
  return oneByOne(
    'deliveries.retry',
    (input: Requested) => input.instanceId,
    async (tx, { instanceId, eventId, seq, now, reach }): Promise<RetryOutcome> => {
      const open = db
        .selectFrom('deliveries')
        .select(['endpoint_id', 'readiness', 'due_at', 'requested_at', 'scheduled_at'])
        .where('instance_id', '=', instanceId)
        .where('event_id', '=', eventId)
        .where('seq', '=', seq)
      const reached = reach === 'own' ? open.where(isToOwn('deliveries')) : open
      const [row] = await tx.query(statements.locking(reached, 'update', 'deliveries'))
      if (row === undefined) {
        const ended = db
          .selectFrom('finished_deliveries')
          .select('seq')
          .where('instance_id', '=', instanceId)
          .where('event_id', '=', eventId)
          .where('seq', '=', seq)
          .where(reach === 'own' ? isToOwn('finished_deliveries') : sql<boolean>`true`)
        return { kind: (await tx.query(ended)).length === 0 ? 'no_delivery' : 'not_waiting' }
      }
      const { endpoint_id, readiness, due_at, requested_at, scheduled_at } = row
      if (isRecent(requested_at, now)) return { kind: 'too_soon', afterMs: requested_at + RETRY_NOW_EVERY_MS - now }
      if (readiness !== 'retry' || due_at <= now || scheduled_at !== null) return { kind: 'not_waiting' }
      await tx.each(update, [{ instance_id: instanceId, event_id: eventId, endpoint_id, requested_at: now }])
      return { kind: 'requested' }
    },
    ({ kind }) => kind === 'requested',
  )
}

interface RetryStep {
  instanceId: InstanceId
  endpointId: EndpointId
  /** The last delivery of the previous step. */
  after: { due_at: number; seq: number }
  now: number
}

export function retryAllOperation(statements: Statements) {
  const { db } = statements
  const update = updateStatement(statements)
  return oneByOne(
    'deliveries.retryAll',
    (input: RetryStep) => input.instanceId,
    async (tx, { instanceId, endpointId, after, now }) => {
      const waiting = db
        .selectFrom('deliveries')
        .select(['event_id', 'seq', 'due_at', 'requested_at', 'scheduled_at'])
        .where('instance_id', '=', instanceId)
        .where('endpoint_id', '=', endpointId)
        .where(sql<boolean>`readiness = 'retry'`)
        .where(sql<boolean>`(due_at, seq) > (${after.due_at}, ${after.seq})`)
        .orderBy('due_at')
        .orderBy('seq')
        .limit(STEP)
      const rows = await tx.query(statements.locking(waiting, 'update', 'deliveries'))
      const mayRetry = rows.filter(row => row.scheduled_at === null && !isRecent(row.requested_at, now))
      await tx.each(
        update,
        mayRetry.map(({ event_id }) => ({
          instance_id: instanceId,
          event_id,
          endpoint_id: endpointId,
          requested_at: now,
        })),
      )
      const last = rows.at(-1)
      const next = last === undefined || rows.length < STEP ? null : { due_at: last.due_at, seq: last.seq }
      return { count: mayRetry.length, next }
    },
    ({ count }) => count > 0,
  )
}

/** A request in the future does not count: the clock was set back. */
function isRecent(requestedAt: number | null, now: number): requestedAt is number {
  return requestedAt !== null && requestedAt <= now && now < requestedAt + RETRY_NOW_EVERY_MS
}
