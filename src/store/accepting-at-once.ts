import { type Compilable, sql } from 'kysely'
import type { StoredConnectionState } from '../domain/connection.ts'
import type { InstanceId } from '../domain/ids.ts'
import type { MessageState } from '../domain/message.ts'
import type { Core } from './core.ts'
import type { Operation } from './operation.ts'
import { admitted, WINDOW_MS } from './rate-window.ts'
import type { Session } from './session.ts'
import type { Statements } from './statement.ts'
import type { Admitted, CallersMessage } from './store.ts'

interface MessageCall {
  /** In hexadecimal digits. */
  tokenDigest: string
  message: CallersMessage
  now: number
}

/**
 * Counts calls and accepts their messages in one visit to the database, where nothing speaks against it: the token is
 * known, its window is there and not full, the instance plainly connected. Of any other call nothing is counted and
 * nothing stored, and its outcome is null.
 *
 * A call is counted in a window that is there, never in a new one: who deletes an instance takes the window away, waits
 * so for the calls that are counting in it, and those that come later find none, whatever else they still see.
 */
export function acceptAtOnceOperation({ statements }: Core, limit: number): Operation<MessageCall, Admitted | null> {
  const accept = prepare(statements, limit)
  async function run(session: Session, calls: readonly MessageCall[]): Promise<(Admitted | null)[]> {
    const batch = new Batch(calls)
    const [answer] = await session.run(accept, batch)
    const outcomes = new Array<Admitted | null>(calls.length).fill(null)
    for (const [first, theirs, instanceId, counted, resetMs] of answer?.counted ?? []) {
      for (let index = 0; index < theirs; index += 1) {
        const nth = counted - theirs + index + 1
        outcomes[batch.positions[first - 1 + index]!] = admitted(instanceId, nth, resetMs, limit)
      }
    }
    return outcomes
  }
  return {
    // Measured as what it is to a caller, whichever way his message went.
    name: 'messages.accept',
    isCall: true,
    instanceId: ({ tokenDigest }) => tokenDigest,
    keys: () => [],
    run,
    runAlone: run,
  }
}

/** Calls as PostgreSQL takes them, in columns, each caller's together. */
class Batch {
  /** Where each one stood among the calls. */
  readonly positions: readonly number[]
  /** Of each caller; `firsts` is where his messages begin, counted from 1. */
  readonly tokenDigests: string[] = []
  readonly firsts: number[] = []
  readonly counts: number[] = []
  /** Of each message. */
  readonly ids: string[] = []
  readonly recipients: string[] = []
  readonly texts: string[] = []
  readonly whatsappIds: string[] = []
  readonly createdAt: number[] = []

  constructor(calls: readonly MessageCall[]) {
    // One order for every node, so that no two wait for each other; a caller's own calls stay in theirs.
    const digests = calls.map(call => call.tokenDigest)
    this.positions = [...calls.keys()].sort((a, b) => compare(digests[a]!, digests[b]!))
    for (const position of this.positions) {
      const { tokenDigest, message, now } = calls[position]!
      if (tokenDigest !== this.tokenDigests.at(-1)) {
        this.tokenDigests.push(tokenDigest)
        this.firsts.push(this.ids.length + 1)
        this.counts.push(0)
      }
      this.counts[this.counts.length - 1]! += 1
      this.ids.push(message.id)
      this.recipients.push(message.to)
      this.texts.push(message.text)
      this.whatsappIds.push(message.whatsappId)
      this.createdAt.push(now)
    }
  }
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** A caller who was counted: his `firsts` and `counts`, his instance, its calls by now, the ms until its window ends. */
type Counted = [first: number, theirs: number, InstanceId, calls: number, resetMs: number]

/** What goes in and comes out is in few pieces: each costs the driver about as much as a long one. */
function prepare(statements: Statements, limit: number) {
  const { db } = statements
  // Read once for all rows.
  const now = sql<number>`(select ${statements.now})`
  const isOver = sql<boolean>`rate_windows.opened_at + ${sql.lit(WINDOW_MS)} <= ${now}`
  const calls = sql<number>`case when ${isOver} then 0 else rate_windows.calls end + callers.count`
  const resetMs = sql<number>`greatest(0, counted.opened_at + ${sql.lit(WINDOW_MS)} - ${now})`
  return statements.one((batch: Batch): Compilable<{ counted: Counted[] | null }> => {
    const callers = sql<{ token_digest: string; first: number; count: number }>`
      unnest(${batch.tokenDigests}::text[], ${batch.firsts}::integer[], ${batch.counts}::integer[])`
    const positions = sql<{ at: number }>`generate_series(counted.first, counted.first + counted.count - 1)`
    const text = (column: readonly string[]) => sql<string>`(${column}::text[])[at]`
    return db
      .with('counted', counting =>
        counting
          .updateTable('rate_windows')
          .from(callers.as<'callers'>(sql`callers(token_digest, first, count)`))
          .innerJoin('instances', join =>
            join.on('instances.token_digest', '=', sql<Uint8Array>`decode(callers.token_digest, 'hex')`),
          )
          .innerJoin('connections', 'connections.instance_id', 'instances.id')
          .innerJoin('leases', 'leases.instance_id', 'instances.id')
          .set({
            opened_at: sql<number>`case when ${isOver} then ${now} else rate_windows.opened_at end`,
            calls,
          })
          .whereRef('rate_windows.instance_id', '=', 'instances.id')
          .where(sql<boolean>`${calls} <= ${sql.lit(limit)}`)
          .where('connections.state', '=', sql.lit<StoredConnectionState>('connected'))
          .where('leases.lease_until', '>', now)
          .returning(['callers.first', 'callers.count'])
          .returning(['rate_windows.instance_id', 'rate_windows.calls', 'rate_windows.opened_at']),
      )
      .with('accepted', accepting =>
        accepting
          .insertInto('messages')
          .columns(['instance_id', 'id', 'recipient', 'text', 'whatsapp_id', 'created_at', 'state'])
          .expression(eb =>
            eb
              .selectFrom('counted')
              .crossJoinLateral(positions.as<'positions'>(sql`positions(at)`))
              .select('counted.instance_id')
              .select([
                text(batch.ids).as('id'),
                text(batch.recipients).as('recipient'),
                text(batch.texts).as('text'),
                text(batch.whatsappIds).as('whatsapp_id'),
                sql<number>`(${batch.createdAt}::bigint[])[at]`.as('created_at'),
                sql.lit<MessageState>('queued').as('state'),
              ]),
          ),
      )
      .selectFrom('counted')
      .select(
        sql<Counted[] | null>`json_agg(json_build_array(first, count, instance_id, calls, ${resetMs}))`.as('counted'),
      )
  })
}
