import { type RawBuilder, sql } from 'kysely'
import type { MessageState } from '../../domain/message.ts'
import { IS_FAILED, IS_QUEUED, IS_SETTLED } from '../engine/schema/messages.ts'

/**
 * The ids of an instance's messages that meet a condition on `id`, by index: of those in `state`, or of more where no index
 * tells them apart. There is no index over all of them (migration 0011); the queued ones, which stand in theirs in the order
 * accepted, are looked at one and all.
 */
export function messageIds(
  instanceId: RawBuilder<string>,
  condition: RawBuilder<boolean>,
  state?: MessageState,
): RawBuilder<{ id: string }> {
  const all = sql<{ id: string }>`select id from messages where instance_id = ${instanceId} and ${condition}`
  switch (state) {
    case undefined:
      return sql`(${all} and ${IS_QUEUED} union all ${all} and ${IS_SETTLED})`
    case 'queued':
      return sql`(${all} and ${IS_QUEUED})`
    case 'failed':
      return sql`(${all} and ${IS_FAILED})`
    default:
      return sql`(${all} and ${IS_SETTLED})`
  }
}
