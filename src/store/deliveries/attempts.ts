import { sql } from 'kysely'
import type { AfterAttempt } from '../../domain/events/delivery.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { RowOf, Statements } from '../engine/statement.ts'
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
    keys: ({ delivery }) => [String(delivery.seq)],
    async run(tx, inputs) {
      const rows = await tx.each(
        queries.find,
        inputs.map(({ lease, delivery }) => ({
          instance_id: lease.instanceId,
          event_id: delivery.eventId,
          seq: delivery.seq,
          attempts: delivery.attemptNumber - 1,
        })),
      )
      const open = new Map<number, (typeof rows)[number]>()
      for (const row of rows) open.set(row.seq, row)
      const made: RowOf<typeof ATTEMPT>[] = []
      const again: RowOf<typeof DELIVERY & typeof RETRY>[] = []
      const finished: RowOf<typeof FINISHED>[] = []
      const chains: RowOf<typeof CHAIN>[] = []
      const outcomes: { unblocked: boolean }[] = []
      const finishedInLane = new Map<string, { unblocked: boolean }>()
      for (const { delivery, attempt, then } of inputs) {
        const { attemptNumber, requested } = delivery
        const isFinal = then.kind !== 'retry'
        const row = open.get(delivery.seq)
        if (row === undefined || (requested !== null && isRecorded(requested.at, row))) {
          // Already recorded. If the outcome of that commit was unknown, no hint was published, so a final attempt is assumed
          // to have unblocked a successor.
          outcomes.push({ unblocked: isFinal })
          continue
        }
        const outcome = { unblocked: false }
        outcomes.push(outcome)
        made.push(rowOf(row, delivery, attempt, isFinal))
        if (!isFinal) {
          const attempts = requested ? attemptNumber - 1 : attemptNumber
          again.push({ ...row, attempts, due_at: Math.round(then.dueAt), failed_at: Math.round(then.failedAt) })
          continue
        }
        finished.push({ ...row, attempts: attemptNumber, state: then.kind })
        finishedInLane.set(laneOf(row), outcome)
        if (row.message_id !== null) chains.push({ ...row, message_id: row.message_id })
      }
      if (made.length > 0) tx.post(queries.insertAttempt, made)
      if (again.length > 0) tx.post(queries.retry, again)
      if (finished.length > 0) {
        tx.post(queries.remove, finished)
        tx.post(queries.insertFinished, finished)
      }
      if (chains.length > 0) {
        // One hint for each lane is enough.
        for (const row of await tx.each(queries.unblock, chains)) finishedInLane.get(laneOf(row))!.unblocked = true
      }
      return outcomes
    },
  }
}

function rowOf(
  row: { instance_id: string; event_id: string; seq: number },
  { requested, attemptNumber }: DueDelivery,
  attempt: AttemptRecord,
  isFinal: boolean,
): RowOf<typeof ATTEMPT> {
  return {
    instance_id: row.instance_id,
    delivery_seq: row.seq,
    // A requested attempt that failed does not use up its number: the scheduled attempt with this number is still to come.
    // A negative number keeps the two rows apart.
    attempt_number: requested && !isFinal ? -requested.at : attemptNumber,
    requested_number: requested && attemptNumber,
    event_id: row.event_id,
    url: attempt.url,
    started_at: Math.round(attempt.startedAt),
    duration_ms: Math.round(attempt.durationMs),
    status: attempt.status,
    error: attempt.error,
    response_excerpt: attempt.responseExcerpt,
  }
}

/** Whether a requested attempt is already recorded. For a recorded scheduled attempt, `find` returns no row. */
function isRecorded(requestedAt: number, row: { requested_at: number | null; scheduled_at: number | null }): boolean {
  return row.scheduled_at === null || row.requested_at !== requestedAt
}

function laneOf({ instance_id, endpoint_id }: { instance_id: string; endpoint_id: string }): string {
  return `${instance_id}/${endpoint_id}`
}

const ATTEMPT = {
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
} as const

const DELIVERY = { instance_id: 'text', event_id: 'text', endpoint_id: 'text' } as const

const RETRY = { attempts: 'integer', due_at: 'integer', failed_at: 'integer' } as const

const FINISHED = {
  ...DELIVERY,
  seq: 'integer',
  url: 'text',
  state: 'text',
  attempts: 'integer',
  redelivery: 'integer',
} as const

const CHAIN = { ...DELIVERY, message_id: 'text' } as const

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

    insertAttempt: statements.insert('attempts', ATTEMPT),

    retry: statements.update('deliveries', DELIVERY, RETRY, {
      fixed: { readiness: sql.lit('retry'), scheduled_at: sql.lit(null) },
    }),

    remove: statements.remove('deliveries', DELIVERY),

    insertFinished: statements.insert('finished_deliveries', FINISHED, { fixed: { superseded: sql.lit(0) } }),

    unblock: statements.rows(CHAIN, db =>
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
