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
    // One order for every node, so that no two wait for each other.
    const ordered = [...calls].sort((a, b) => (a.tokenDigest < b.tokenDigest ? -1 : 1))
    const rows = await session.each(
      accept,
      ordered.map(({ tokenDigest, message, now }) => ({
        token_digest: Buffer.from(tokenDigest, 'hex'),
        id: message.id,
        recipient: message.to,
        text: message.text,
        whatsapp_id: message.whatsappId,
        created_at: now,
      })),
    )
    const accepted = new Map(rows.map(row => [row.id, row]))
    return calls.map(({ message }) => {
      const row = accepted.get(message.id)
      return row === undefined ? null : admitted(row.instance_id, row.calls, row.reset_ms, limit)
    })
  }
  return {
    // Measured as what it is to a caller, whichever way his message went.
    name: 'messages.accept',
    isCall: true,
    instanceId: ({ tokenDigest }) => tokenDigest,
    // Each call moves its window by one: two of one caller never share a statement.
    keys: () => ['window'],
    run,
    runAlone: run,
  }
}

const COLUMNS = {
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
  return statements.rows(COLUMNS, db =>
    db
      .with('counted', counting =>
        counting
          .updateTable('rate_windows')
          .from('input')
          .innerJoin('instances', 'instances.token_digest', 'input.token_digest')
          .innerJoin('connections', 'connections.instance_id', 'instances.id')
          .innerJoin('leases', 'leases.instance_id', 'instances.id')
          .set({
            opened_at: sql<number>`case when ${isOver} then ${now} else rate_windows.opened_at end`,
            calls: sql<number>`case when ${isOver} then 1 else rate_windows.calls + 1 end`,
          })
          .whereRef('rate_windows.instance_id', '=', 'instances.id')
          .where(sql<boolean>`(${isOver} or rate_windows.calls < ${sql.lit(limit)})`)
          .where('connections.state', '=', sql.lit<StoredConnectionState>('connected'))
          .where('leases.lease_until', '>', now)
          .returning(['rate_windows.instance_id', 'rate_windows.calls', 'rate_windows.opened_at'])
          .returning(['input.id', 'input.recipient', 'input.text', 'input.whatsapp_id', 'input.created_at']),
      )
      .with('accepted', accepting =>
        accepting
          .insertInto('messages')
          .columns(['instance_id', 'id', 'recipient', 'text', 'whatsapp_id', 'created_at', 'state'])
          .expression(eb =>
            eb
              .selectFrom('counted')
              .select(['instance_id', 'id', 'recipient', 'text', 'whatsapp_id', 'created_at'])
              .select(sql.lit<MessageState>('queued').as('state')),
          ),
      )
      .selectFrom('counted')
      .select(['id', 'instance_id', 'calls'])
      .select(sql<number>`greatest(0, opened_at + ${sql.lit(WINDOW_MS)} - ${now})`.as('reset_ms')),
  )
}
