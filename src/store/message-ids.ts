import { type RawBuilder, sql } from 'kysely'
import type { MessageState } from '../domain/message.ts'
import { IS_FAILED, IS_QUEUED, IS_SETTLED } from './schema/messages.ts'
import type { Statements } from './statement.ts'

/**
 * The ids of an instance's messages that meet a condition on `id`, by index: of those in `state`, or of more where no index
 * tells them apart. On SQLite there is no index over all of them (migration 0011); the queued ones, which stand there in the
 * order accepted, are looked at one and all.
 */
export function messageIds(
  { kind }: Statements,
  instanceId: RawBuilder<string>,
  condition: RawBuilder<boolean>,
  state?: MessageState,
): RawBuilder<{ id: string }> {
  const all = sql<{ id: string }>`select id from messages where instance_id = ${instanceId} and ${condition}`
  if (state === 'failed') return sql`(${all} and ${IS_FAILED})`
  if (kind === 'postgres') return sql`(${all})`
  if (state === 'queued') return sql`(${all} and ${IS_QUEUED})`
  if (state !== undefined) return sql`(${all} and ${IS_SETTLED})`
  return sql`(${all} and ${IS_QUEUED} union all ${all} and ${IS_SETTLED})`
}
