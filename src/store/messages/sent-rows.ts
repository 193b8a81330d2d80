import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Message, MessageState } from '../../domain/message.ts'
import type { Core } from '../engine/core.ts'
import type { MessagesTable } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import { messageIds } from './message-ids.ts'
import { type Slice, search } from './searching.ts'
import { BYTES, type FoundMessage } from './sizes.ts'

const BESIDES_TEXT = [
  'id',
  'whatsapp_id',
  'state',
  'recipient',
  'created_at',
  'sent_at',
  'delivered_at',
  'read_at',
  'failed_at',
  'failure_code',
  'failure_message',
  'media_id',
  'file',
  'extras',
  'not_before',
  'edited_at',
  'deleted_at',
] as const

/** The columns that `toMessage` needs. */
export const SHOWN = [...BESIDES_TEXT, 'text'] as const

/** The sent messages of a slice that meet all conditions, newest first. */
export function findSentInSlice(
  { reader, statements }: Core,
  instanceId: InstanceId,
  slice: Slice,
  limit: number,
  state: MessageState | undefined,
  conditions: readonly RawBuilder<boolean>[],
): Promise<FoundMessage[]> {
  const ids = ({ below, from }: Slice) =>
    statements.db
      .selectFrom(messageIds(sql.val(instanceId), sql`id < ${below} and id >= ${from}`, state).as('ids'))
      .select('ids.id')
      .orderBy('ids.id', 'desc')
  const find = async (part: Slice, count: number, among: number) => {
    let query = statements.db
      .selectFrom('messages')
      .select(['id', BYTES.messages.as('bytes')])
      .where('instance_id', '=', instanceId)
      .where(statements.dialect.isAmong('id', ids(part).limit(among)))
      .orderBy('id', 'desc')
      .limit(count)
    if (state !== undefined) query = query.where('state', '=', sql.lit(state))
    for (const condition of conditions) query = query.where(condition)
    return (await reader.query(query)).map(row => ({ ...row, table: 'messages' as const }))
  }
  const edge = async (part: Slice, distance: number) =>
    (await reader.query(ids(part).offset(distance).limit(1)))[0]?.id ?? null
  // For these states, `messageIds` finds exactly the messages in the state.
  const isFound = state === undefined || state === 'queued' || state === 'failed'
  return isFound && conditions.length === 0 ? find(slice, limit, limit) : search(instanceId, slice, limit, edge, find)
}

/** Messages and commands by their IDs. @param text selected instead of the whole text */
export function selectSent(
  { db }: Statements,
  instanceId: InstanceId,
  ids: readonly string[],
  text: RawBuilder<string> = sql.ref('text'),
) {
  return db
    .selectFrom('messages')
    .select([...BESIDES_TEXT, text.as('text')])
    .where('instance_id', '=', instanceId)
    .where('id', 'in', ids)
}

export type SentRow = Pick<Selectable<MessagesTable>, (typeof SHOWN)[number]>

export function toMessage(row: SentRow): Message {
  const { media_id: mediaId, file, extras } = row
  return {
    id: row.id,
    whatsappId: row.whatsapp_id,
    state: row.state,
    to: row.recipient,
    text: row.text,
    ...(mediaId !== null && file !== null && { file: { mediaId, ...JSON.parse(file) } }),
    ...(extras !== null && { extras: JSON.parse(extras) }),
    createdAt: row.created_at,
    ...(row.not_before !== null && { notBefore: row.not_before }),
    sentAt: row.sent_at,
    deliveredAt: row.delivered_at,
    readAt: row.read_at,
    failedAt: row.failed_at,
    editedAt: row.edited_at,
    deletedAt: row.deleted_at,
    failure: row.failure_code === null ? null : { code: row.failure_code, message: row.failure_message! },
  }
}
