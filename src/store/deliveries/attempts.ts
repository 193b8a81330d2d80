import { sql } from 'kysely'
import type { AfterAttempt } from '../../domain/events/delivery.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'
import type { AttemptRecord, DueDelivery } from './deliveries.ts'

export interface AttemptInput {
  lease: Lease
  delivery: DueDelivery
  attempt: AttemptRecord
  then: AfterAttempt
}

/**
 * Records an attempt and its consequences. Does nothing if the attempt was already recorded.
 * `unblocked`: a successor may have become ready, so the lane needs a hint.
 */
export function attemptOperation(statements: Statements): Operation<AttemptInput, { unblocked: boolean }> {
  const queries = prepare(statements)
  return {
    name: 'deliveries.attempt',
    ...fenced,
    keys: ({ delivery }) => [delivery.id],
    async run(tx, inputs) {
      const rows = await tx.each(
        queries.find,
        inputs.map(({ lease, delivery, attempt }) => ({
          instance_id: lease.instanceId,
          event_id: delivery.eventId,
          seq: delivery.seq,
          attempts: attempt.attemptNumber - 1,
        })),
      )
      const open = new Map(rows.map(row => [row.seq, row]))
      const made = inputs.flatMap(input => {
        const row = open.get(input.delivery.seq)
        return row === undefined || isRecorded(input, row) ? [] : [{ ...input, row }]
      })
      if (made.length === 0) return outcomesOf(inputs, made)

      tx.post(
        queries.insertAttempt,
        made.map(({ delivery, attempt, row, then }) => ({
          instance_id: row.instance_id,
          delivery_seq: row.seq,
          // A requested attempt that failed does not use up its number: the scheduled attempt with this number is still to come.
          // A negative number keeps the two rows apart.
          attempt_number: delivery.requested && then.kind === 'retry' ? -delivery.requested.at : attempt.attemptNumber,
          requested_number: delivery.requested && attempt.attemptNumber,
          event_id: row.event_id,
          url: attempt.url,
          started_at: Math.round(attempt.startedAt),
          duration_ms: Math.round(attempt.durationMs),
          status: attempt.status,
          error: attempt.error,
          response_excerpt: attempt.responseExcerpt,
        })),
      )
      const again = made.flatMap(({ delivery, attempt, row: { instance_id, event_id, endpoint_id }, then }) => {
        if (then.kind !== 'retry') return []
        const attempts = delivery.requested ? attempt.attemptNumber - 1 : attempt.attemptNumber
        return [{ instance_id, event_id, endpoint_id, attempts, ...momentsOf(then) }]
      })
      if (again.length > 0) tx.post(queries.retry, again)

      const finished = made.flatMap(({ attempt, row, then }) =>
        then.kind === 'retry' ? [] : [{ ...row, attempts: attempt.attemptNumber, state: then.kind }],
      )
      if (finished.length === 0) return outcomesOf(inputs, made)
      tx.post(
        queries.remove,
        finished.map(({ instance_id, event_id, endpoint_id }) => ({ instance_id, event_id, endpoint_id })),
      )
      tx.post(queries.insertFinished, finished)
      const successors = await tx.each(
        queries.unblock,
        finished.flatMap(({ instance_id, event_id, endpoint_id, message_id }) =>
          message_id === null ? [] : [{ instance_id, event_id, endpoint_id, message_id }],
        ),
      )
      return outcomesOf(inputs, made, new Set(successors.map(laneOf)))
    },
  }
}

/**
 * Assumes that an attempt that was already recorded unblocked a successor: if the outcome of its commit was unknown, no
 * hint was published.
 * @param freed the lanes of the successors that this commit unblocked
 */
function outcomesOf(
  inputs: readonly AttemptInput[],
  made: readonly AttemptInput[],
  freed: ReadonlySet<string> = new Set(),
): { unblocked: boolean }[] {
  const isMade = new Set(made.map(({ delivery }) => delivery.seq))
  return inputs.map(({ lease, delivery, then }) => {
    if (!isMade.has(delivery.seq)) return { unblocked: then.kind !== 'retry' }
    return { unblocked: freed.has(laneOf({ instance_id: lease.instanceId, endpoint_id: delivery.endpointId })) }
  })
}

/** Whether a requested attempt is already recorded. For a recorded scheduled attempt, `find` returns no row. */
function isRecorded({ delivery }: AttemptInput, row: { requested_at: number | null; scheduled_at: number | null }) {
  return delivery.requested !== null && (row.scheduled_at === null || row.requested_at !== delivery.requested.at)
}

function laneOf({ instance_id, endpoint_id }: { instance_id: string; endpoint_id: string }): string {
  return `${instance_id}/${endpoint_id}`
}

function momentsOf({ dueAt, failedAt }: { dueAt: number; failedAt: number }) {
  return { due_at: Math.round(dueAt), failed_at: Math.round(failedAt) }
}

function prepare(statements: Statements) {
  return {
    find: statements.find(
      'deliveries',
      { instance_id: 'text', event_id: 'text', seq: 'integer', attempts: 'integer' },
      [
        'instance_id',
        'event_id',
        'endpoint_id',
        'seq',
        'message_id',
        'url',
        'redelivery',
        'requested_at',
        'scheduled_at',
      ],
      { lock: 'update' },
    ),

    insertAttempt: statements.insert('attempts', {
      instance_id: 'text',
      delivery_seq: 'integer',
      attempt_number: 'integer',
      requested_number: 'integer?',
      event_id: 'text',
      url: 'text',
      started_at: 'integer',
      duration_ms: 'integer',
      status: 'integer?',
      error: 'text?',
      response_excerpt: 'text?',
    }),

    retry: statements.update(
      'deliveries',
      { instance_id: 'text', event_id: 'text', endpoint_id: 'text' },
      { attempts: 'integer', due_at: 'integer', failed_at: 'integer' },
      { fixed: { readiness: sql.lit('retry'), scheduled_at: sql.lit(null) } },
    ),

    remove: statements.remove('deliveries', { instance_id: 'text', event_id: 'text', endpoint_id: 'text' }),

    insertFinished: statements.insert(
      'finished_deliveries',
      {
        instance_id: 'text',
        event_id: 'text',
        endpoint_id: 'text',
        seq: 'integer',
        url: 'text',
        state: 'text',
        attempts: 'integer',
        redelivery: 'integer',
      },
      { fixed: { superseded: sql.lit(0) } },
    ),

    unblock: statements.rows({ instance_id: 'text', message_id: 'text', event_id: 'text', endpoint_id: 'text' }, db =>
      db
        .updateTable('deliveries')
        .from('input')
        .set({ readiness: 'first', blocked_by: null })
        .whereRef('deliveries.instance_id', '=', 'input.instance_id')
        .whereRef('deliveries.message_id', '=', 'input.message_id')
        .whereRef('deliveries.blocked_by', '=', 'input.event_id')
        .whereRef('deliveries.endpoint_id', '=', 'input.endpoint_id')
        .returning(['deliveries.instance_id', 'deliveries.endpoint_id']),
    ),
  }
}
