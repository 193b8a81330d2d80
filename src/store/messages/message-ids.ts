import { type RawBuilder, sql } from 'kysely'
import type { MessageState } from '../../domain/message.ts'
import { IS_FAILED, IS_QUEUED, IS_SETTLED } from '../engine/schema/messages.ts'

/**
 * The IDs of an instance's messages that meet a condition on `id`. With `state`, a superset of the messages in that state,
 * since not every state has an index. No single index contains all messages (migration 0011). The index of queued messages
 * is in the order of acceptance, so it is read entirely.
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
