import { setImmediate } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { firstMessageId, type InstanceId, type MessageId } from '../../domain/ids.ts'
import type { FailureCode, MessageState } from '../../domain/message.ts'
import type { Core } from '../engine/core.ts'
import { IS_FAILED, IS_QUEUED } from '../engine/schema/messages.ts'
import { messageIds } from '../messages/message-ids.ts'
import { MAX_COUNTED, type MessageCounts } from './statistics.ts'

/** Queued messages read by one query. Other calls run in between. */
const SLICE = 20_000

/** Reads index entries only. */
export async function readMessageCounts(
  { reader, statements }: Core,
  instanceId: InstanceId,
  since: number,
  until: number,
): Promise<Omit<MessageCounts, 'queued'>> {
  const range = sql<boolean>`id >= ${firstMessageId(since)} and id < ${firstMessageId(until)}`
  const count = (state: MessageState) =>
    sql`(select count(*) from ${messageIds(sql.val(instanceId), range, state)} as ids)`
  const query = sql<Record<'settled' | 'failed' | 'received', number>>`select
    ${count('sent')} as settled, ${count('failed')} as failed,
    (select count(*) from incoming_messages where instance_id = ${instanceId} and ${range})
      - (select count(*) from incoming_messages where instance_id = ${instanceId} and ${range} and written = 1) as received`
  const [row] = await reader.query({ compile: () => query.compile(statements.db) })
  const [settled, failed] = [Number(row?.settled ?? 0), Number(row?.failed ?? 0)]
  return { sent: settled - failed, failed, received: Number(row?.received ?? 0) }
}

/** Reads the whole queue once, in slices: its index is in the order of acceptance, and does not contain times. */
export async function readQueued(
  { reader, statements }: Core,
  instanceId: InstanceId,
  bounds: readonly number[],
): Promise<number[]> {
  const counts = bounds.slice(1).map(() => 0)
  const place = placeAmong(bounds.map(firstMessageId), 0, bounds.length)
  for (let after = 0; ; await setImmediate()) {
    const query = sql<{ place: number; count: number; last: number }>`select ${place} as place, count(*) as count,
      max(seq) as last from (select seq, id from messages where instance_id = ${instanceId} and ${IS_QUEUED}
        and seq > ${after} order by seq limit ${sql.lit(SLICE)}) as queued group by 1`
    const rows = await reader.query({ compile: () => query.compile(statements.db) })
    for (const row of rows) if (row.place > 0 && row.place < bounds.length) counts[row.place - 1]! += Number(row.count)
    if (rows.reduce((sum, { count }) => sum + Number(count), 0) < SLICE) return counts
    after = Math.max(...rows.map(({ last }) => Number(last)))
  }
}

/** SQL that finds how many of `firsts` are not above the ID of a row, by bisection between indexes `from` and `to`. */
function placeAmong(firsts: readonly MessageId[], from: number, to: number): RawBuilder<number> {
  if (from === to) return sql<number>`${sql.lit(from)}`
  const middle = Math.floor((from + to) / 2)
  return sql<number>`case when id < ${firsts[middle]} then ${placeAmong(firsts, from, middle)}
    else ${placeAmong(firsts, middle + 1, to)} end`
}

/** Counts the newest `MAX_COUNTED` failed messages since `since` by failure code. */
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
