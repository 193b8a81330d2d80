import { sql } from 'kysely'
import { firstMessageId, type InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { idBefore, toPage } from '../engine/cursor.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Slice } from '../messages/searching.ts'
import { deliveredIds, type Names, sentIds } from './chat-lines.ts'

interface Row {
  id: string
  /** Null: the message has no file, or the file is gone. */
  medium: string | null
}

/** The files that a page of a chat's messages has, latest first. It reads no texts. */
export async function listFiles(
  { reader, statements }: Core,
  instanceId: InstanceId,
  page: PageRequest,
  names: Names,
): Promise<Page<string>> {
  const slice: Slice = { below: idBefore(page, 'msg'), from: firstMessageId(0) }
  const limit = page.limit + 1
  const read = (table: 'messages' | 'incoming_messages', ids: ReturnType<typeof sentIds>): Promise<Row[]> =>
    reader.query(
      statements.db
        .selectFrom(table)
        .select(['id', mediumOf(table).as('medium')])
        .where('instance_id', '=', instanceId)
        .where('id', 'in', ids)
        .orderBy('id', 'desc')
        .limit(limit),
    )
  const [sent, delivered] = await Promise.all([
    read('messages', sentIds(instanceId, slice, limit, names)),
    read('incoming_messages', deliveredIds(instanceId, slice, limit, names, null)),
  ])
  const rows = [...sent, ...delivered].sort((one, other) => (one.id < other.id ? 1 : -1))
  const { data, nextCursor } = toPage(
    rows,
    page.limit,
    ({ id }) => id,
    ({ medium }) => medium,
  )
  return { data: data.filter(medium => medium !== null), nextCursor }
}

function mediumOf(table: 'messages' | 'incoming_messages') {
  return sql<string | null>`(select media.id from media where media.instance_id = ${sql.ref(`${table}.instance_id`)}
    and media.id = ${sql.ref(`${table}.media_id`)} and media.gone_at is null)`
}
