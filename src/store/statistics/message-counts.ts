import { type RawBuilder, sql } from 'kysely'
import { firstMessageId, type InstanceId } from '../../domain/ids.ts'
import type { FailureCode, MessageState } from '../../domain/message.ts'
import type { Core } from '../engine/core.ts'
import { IS_FAILED } from '../engine/schema/messages.ts'
import { messageIds } from '../messages/message-ids.ts'
import { MAX_COUNTED, type MessageCounts } from './statistics.ts'

/** Reads index entries only. */
export async function readMessageCounts(
  { reader, statements }: Core,
  instanceId: InstanceId,
  since: number,
  until: number,
): Promise<MessageCounts> {
  const range = sql<boolean>`id >= ${firstMessageId(since)} and id < ${firstMessageId(until)}`
  const count = (state: MessageState) =>
    sql`(select count(*) from ${messageIds(sql.val(instanceId), range, state)} as ids)`
  const query = sql<Record<'settled' | 'failed' | 'queued' | 'received', number>>`select
    ${count('sent')} as settled, ${count('failed')} as failed, ${count('queued')} as queued,
    (select count(*) from incoming_messages where instance_id = ${instanceId} and ${range}) as received`
  const [row] = await reader.query({ compile: () => query.compile(statements.db) })
  const [settled, failed] = [Number(row?.settled ?? 0), Number(row?.failed ?? 0)]
  return { sent: settled - failed, failed, queued: Number(row?.queued ?? 0), received: Number(row?.received ?? 0) }
}

/** Of the newest `MAX_COUNTED` failed messages since then. */
export async function readFailures(
  { reader, statements }: Core,
  instanceId: InstanceId,
  since: number,
): Promise<{ code: FailureCode; count: number }[]> {
  const query: RawBuilder<{ code: FailureCode; count: number }> = sql`select failure_code as code, count(*) as count
    from (select failure_code from messages
      where instance_id = ${instanceId} and id >= ${firstMessageId(since)} and ${IS_FAILED}
      order by id desc limit ${sql.lit(MAX_COUNTED)}) as failed
    where failure_code is not null group by failure_code`
  const rows = await reader.query({ compile: () => query.compile(statements.db) })
  return rows
    .map(({ code, count }) => ({ code, count: Number(count) }))
    .toSorted((one, other) => other.count - one.count || (one.code < other.code ? -1 : 1))
}
