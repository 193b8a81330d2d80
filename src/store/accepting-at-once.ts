import { sql } from 'kysely'
import type { StoredConnectionState } from '../domain/connection.ts'
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
    const callers = [...Map.groupBy(calls, call => call.tokenDigest)]
    // One order for every node, so that no two wait for each other.
    callers.sort(([a], [b]) => (a < b ? -1 : 1))
    const rows = await session.each(
      accept,
      callers.flatMap(([tokenDigest, theirs], caller) => {
        const token_digest = Buffer.from(tokenDigest, 'hex')
        return theirs.map(({ message, now }) => ({
          caller,
          token_digest,
          id: message.id,
          recipient: message.to,
          text: message.text,
          whatsapp_id: message.whatsappId,
          created_at: now,
        }))
      }),
    )
    const outcomes = new Map<MessageCall, Admitted>()
    for (const { caller, instance_id, calls: counted, reset_ms } of rows) {
      const [, theirs] = callers[caller]!
      for (const [index, call] of theirs.entries())
        outcomes.set(call, admitted(instance_id, counted - theirs.length + index + 1, reset_ms, limit))
    }
    return calls.map(call => outcomes.get(call) ?? null)
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

const COLUMNS = {
  /** The same for all calls of one caller. */
  caller: 'integer',
  token_digest: 'blob',
  id: 'text',
  recipient: 'text',
  text: 'text',
  whatsapp_id: 'text',
  created_at: 'integer',
} as const

function prepare(statements: Statements, limit: number) {
  // Read once for all rows.
  const now = sql<number>`(select ${statements.now})`
  const isOver = sql<boolean>`rate_windows.opened_at + ${sql.lit(WINDOW_MS)} <= ${now}`
  const calls = sql<number>`case when ${isOver} then 0 else rate_windows.calls end + callers.calls`
  return statements.rows(COLUMNS, db =>
    db
      .with('callers', grouping =>
        grouping
          .selectFrom('input')
          .select(['caller', 'token_digest'])
          .select(eb => eb.fn.countAll<number>().as('calls'))
          .groupBy(['caller', 'token_digest'])
          .orderBy('caller'),
      )
      .with('counted', counting =>
        counting
          .updateTable('rate_windows')
          .from('callers')
          .innerJoin('instances', 'instances.token_digest', 'callers.token_digest')
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
          .returning(['callers.caller', 'rate_windows.instance_id', 'rate_windows.calls', 'rate_windows.opened_at']),
      )
      .with('accepted', accepting =>
        accepting
          .insertInto('messages')
          .columns(['instance_id', 'id', 'recipient', 'text', 'whatsapp_id', 'created_at', 'state'])
          .expression(eb =>
            eb
              .selectFrom('counted')
              .innerJoin('input', 'input.caller', 'counted.caller')
              .select(['counted.instance_id', 'input.id', 'input.recipient', 'input.text', 'input.whatsapp_id'])
              .select(['input.created_at', sql.lit<MessageState>('queued').as('state')]),
          ),
      )
      .selectFrom('counted')
      .select(['caller', 'instance_id', 'calls'])
      .select(sql<number>`greatest(0, opened_at + ${sql.lit(WINDOW_MS)} - ${now})`.as('reset_ms')),
  )
}
