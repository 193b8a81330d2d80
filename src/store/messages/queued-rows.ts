import { type Selectable, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { IS_QUEUED, type MessagesTable } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import { QUEUED_PAGE_BYTES, type QueuedAge, type QueuedMessage } from './messages.ts'
import { BYTES } from './sizes.ts'

/** The columns that `toQueued` needs. */
const QUEUED = [
  'seq',
  'id',
  'instance_id',
  'recipient',
  'text',
  'whatsapp_id',
  'created_at',
  'address',
  'content',
  'media_id',
  'file',
  'extras',
  'not_before',
  'traceparent',
] as const

const QUEUED_BYTES = sql<number>`${BYTES.messages} + coalesce(octet_length(content), 0)`

/** The columns that `toAge` needs. */
const AGED = ['seq', 'id', 'recipient', 'whatsapp_id', 'created_at', 'not_before', 'address'] as const

/**
 * Subqueries, not joins: each is one search by key for each row, whatever the planner knows about the tables. A LID
 * that no message was sent to has no look-up, but the person's number may be known from an incoming message.
 */
const FOUND_ADDRESS = sql<string | null>`coalesce(
  (select numbers.address from numbers
    where numbers.instance_id = messages.instance_id and numbers.number = messages.recipient),
  (select contacts.number || '@s.whatsapp.net' from contacts
    where contacts.instance_id = messages.instance_id and contacts.lid = messages.recipient
      and contacts.lid is not null and contacts.number <> contacts.lid limit 1))`

interface Place {
  instanceId: InstanceId
  limit: number
  afterSeq: number
}

export function queuedStatements(statements: Statements) {
  const { db } = statements
  const queued = (p: Omit<Place, 'limit'>) =>
    db
      .selectFrom('messages')
      .where('instance_id', '=', p.instanceId)
      .where(IS_QUEUED)
      .where('seq', '>', p.afterSeq)
      .orderBy('seq')
  /** The last row of a page. It is found by the sizes, so that no long text is read for it. */
  const lastOfPage = (p: Place) => {
    const sizes = queued(p)
      .select(['seq', QUEUED_BYTES.as('bytes')])
      .limit(p.limit)
    const before = sql<number>`sum(bytes) over (order by seq rows unbounded preceding) - bytes`
    const page = db.selectFrom(sizes.as('sizes')).select(['seq', before.as('before')])
    return db
      .selectFrom(page.as('page'))
      .select(eb => eb.fn.max('seq').as('seq'))
      .where('before', '<', sql.lit(QUEUED_PAGE_BYTES))
  }
  return {
    listQueued: statements.one((p: Place) =>
      queued(p)
        .select(QUEUED)
        .select([QUEUED_BYTES.as('bytes'), FOUND_ADDRESS.as('found_address')])
        .where('seq', '<=', lastOfPage(p))
        .limit(p.limit),
    ),
    listQueuedAges: statements.one((p: Place) => queued(p).select(AGED).limit(p.limit)),
    listQueuedNumbers: statements.one((p: Place & { toSeq: number }) =>
      queued(p).select('seq').where('seq', '<=', p.toSeq).limit(p.limit),
    ),
  }
}

type QueuedRow = Pick<Selectable<MessagesTable>, (typeof QUEUED)[number]> & {
  bytes: number
  found_address: string | null
}

export function toQueued(row: QueuedRow): QueuedMessage {
  const { media_id: mediaId, file, extras, traceparent } = row
  return {
    seq: row.seq,
    id: row.id,
    instanceId: row.instance_id,
    to: row.recipient,
    text: row.text,
    ...(mediaId !== null && file !== null && { file: { mediaId, ...JSON.parse(file) } }),
    ...(extras !== null && { extras: JSON.parse(extras) }),
    whatsappId: row.whatsapp_id,
    createdAt: agedFrom(row),
    foundAddress: row.found_address,
    prepared: row.address === null ? null : { address: row.address, content: row.content! },
    bytes: row.bytes,
    ...(traceparent !== null && { traceparent }),
  }
}

export function toAge(row: Pick<Selectable<MessagesTable>, (typeof AGED)[number]>): QueuedAge {
  const { seq, id, recipient: to, whatsapp_id: whatsappId, address } = row
  return { seq, id, to, whatsappId, createdAt: agedFrom(row), isPrepared: address !== null }
}

/** The age of a scheduled message counts from its scheduled time. */
function agedFrom(row: { not_before: number | null; created_at: number }): number {
  return row.not_before ?? row.created_at
}
