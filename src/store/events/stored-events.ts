import { type AliasedExpression, type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import type { DeliveryFilter } from '../../domain/delivery.ts'
import { type EventKind, otherSideOf } from '../../domain/event.ts'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { IncomingMessage } from '../../domain/incoming-message.ts'
import { type SummaryRow, toSummary, withLatestDelivery } from '../deliveries/delivery-summary.ts'
import type { Core } from '../engine/core.ts'
import { idBefore, toPage } from '../engine/cursor.ts'
import type { Operation } from '../engine/operation.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Database } from '../engine/schema/database.ts'
import type { Lease } from '../leases/leases.ts'
import {
  digestsOf,
  findKnownStatement,
  type Incoming,
  type IncomingOutcome,
  incomingOperation,
  isGroup,
} from '../messages/incoming.ts'
import { type Slice, search } from '../messages/searching.ts'
import { EventDetails } from './event-detail.ts'
import { EventFeed } from './event-feed.ts'
import type { EventRecorder } from './event-recorder.ts'
import type { EventDetail, EventRecord, Events, FeedPage, FeedQuery } from './events.ts'

interface EventRow extends SummaryRow {
  id: string
  kind: EventKind
  timestamp: number
  created_at: number
  message_id: string | null
  recipient: string | null
  chat: string | null
  sender: string | null
  old_body: string | null
}

/** Lists do not read longer bodies. */
const MAX_LISTED_BODY_BYTES = 16 * 1024

export class StoredEvents implements Events {
  readonly #core: Core
  readonly #record: Operation<Incoming, IncomingOutcome>
  readonly #findKnown
  readonly #details: EventDetails
  readonly #feed: EventFeed

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#findKnown = findKnownStatement(core.statements)
    this.#record = incomingOperation(core.statements, recorder, this.#findKnown)
    this.#details = new EventDetails(core)
    this.#feed = new EventFeed(core)
  }

  async recordIncoming(lease: Lease, message: IncomingMessage, now: number): Promise<'recorded' | 'duplicate'> {
    const { recorded, deliverable } = await this.#core.write(this.#record, {
      lease,
      message,
      digests: digestsOf(message),
      now,
    })
    if (deliverable) this.#core.hints.publish('deliveries', lease.instanceId)
    if (recorded) this.#core.hints.publish('log', lease.instanceId)
    return recorded ? 'recorded' : 'duplicate'
  }

  async isRecorded(instanceId: InstanceId, message: IncomingMessage): Promise<boolean> {
    const keys = digestsOf(message).map(digest => ({ instance_id: instanceId, digest }))
    return (await this.#core.reader.each(this.#findKnown, keys)).length > 0
  }

  async list(
    instanceId: InstanceId,
    page: PageRequest,
    filter: { state?: DeliveryFilter | undefined; kind?: EventKind | undefined } = {},
  ): Promise<Page<EventRecord>> {
    const { reader, statements } = this.#core
    const { state, kind } = filter
    const isIndexed = kind === undefined && state !== 'not_posted'
    const slice: Slice = { below: idBefore(page, 'evt'), from: '' }
    const ids = (part: Slice) =>
      statements.db
        .selectFrom(idsOfState(statements.db, instanceId, state, part))
        .select('ids.id')
        // Several endpoints may have a delivery in this state.
        .distinct()
        .orderBy('ids.id', 'desc')
    const find = (part: Slice, limit: number) => {
      let query = withOtherSide(withLatestDelivery(statements.db.selectFrom('events'), state))
        .select(['events.id', 'events.kind', 'events.timestamp', 'events.created_at', 'events.message_id'])
        .where('events.instance_id', '=', instanceId)
        .orderBy('events.id', 'desc')
        .limit(limit)
      if (kind !== undefined) query = query.where('events.kind', '=', kind)
      if (state === 'not_posted') query = query.where(sql<boolean>`open.seq is null and done.seq is null`)
      const shown = isIndexed ? ids(part).limit(limit) : ids(part)
      return reader.query(query.where('events.id', 'in', shown))
    }
    const edge = async (part: Slice, distance: number) => {
      const [row] = await reader.query(ids(part).offset(distance).limit(1))
      return row?.id ?? null
    }
    const limit = page.limit + 1
    const rows = isIndexed ? await find(slice, limit) : await search(slice, limit, edge, find)
    return toPage(
      rows,
      page.limit,
      row => row.id,
      row => toRecord(row, state),
    )
  }

  find(instanceId: InstanceId, id: EventId): Promise<EventDetail | null> {
    return this.#details.find(instanceId, id)
  }

  readFeed(instanceId: InstanceId, query: FeedQuery): Promise<FeedPage | null> {
    return this.#feed.read(instanceId, query)
  }

  findFeedEnd(instanceId: InstanceId): Promise<number> {
    return this.#feed.findLast(instanceId)
  }

  async listReceived(
    instanceId: InstanceId,
    limit: number,
  ): Promise<{ id: EventId; createdAt: number; body: string }[]> {
    return this.#core.reader.query(
      this.#core.statements.db
        .selectFrom('events')
        .select(['id', 'created_at as createdAt', 'body'])
        .where('instance_id', '=', instanceId)
        .where('kind', '=', 'message.received')
        .orderBy('id', 'desc')
        .limit(limit),
    )
  }
}

/** The IDs of the events with a latest delivery in `state`. Each state has its own index; for `not_posted` these are all IDs. */
function idsOfState(
  db: Kysely<Database>,
  instanceId: InstanceId,
  state: DeliveryFilter | undefined,
  { below, from }: Slice,
): AliasedExpression<{ id: EventId }, 'ids'> {
  if (state === undefined || state === 'not_posted') {
    const all = db.selectFrom('events').select('id').where('instance_id', '=', instanceId)
    return all.where('id', '<', below).where('id', '>=', from).as('ids')
  }
  const open = state === 'pending' || state === 'retrying' || state === 'blocked'
  return db
    .selectFrom(open ? 'deliveries' : 'finished_deliveries')
    .select('event_id as id')
    .where('instance_id', '=', instanceId)
    .where('event_id', '<', below)
    .where('event_id', '>=', from)
    .where(conditionOfState(state))
    .as('ids')
}

/** A literal, not a parameter: SQLite uses a partial index only if the query states the index's condition. */
function conditionOfState(state: Exclude<DeliveryFilter, 'not_posted'>) {
  if (state === 'pending') return sql<boolean>`readiness <> 'blocked'`
  if (state === 'retrying') return sql<boolean>`readiness = 'retry'`
  if (state === 'blocked') return sql<boolean>`readiness = 'blocked'`
  return sql<boolean>`state = ${sql.lit(state)} and superseded = 0`
}

/** Selects the other party of an event. Reads the body only if it is short and no message row exists. */
function withOtherSide<O>(query: SelectQueryBuilder<Database, 'events', O>) {
  return query
    .leftJoin('messages as sent', join =>
      join.onRef('sent.instance_id', '=', 'events.instance_id').onRef('sent.id', '=', 'events.message_id'),
    )
    .leftJoin('incoming_messages as received', join =>
      join.onRef('received.instance_id', '=', 'events.instance_id').onRef('received.id', '=', 'events.message_id'),
    )
    .select(['sent.recipient', 'received.chat', 'received.sender'])
    .select(
      sql<string | null>`case when sent.id is null and received.id is null
        and octet_length(events.body) <= ${sql.lit(MAX_LISTED_BODY_BYTES)} then events.body end`.as('old_body'),
    )
}

function otherSide({ recipient, chat, sender, old_body }: EventRow): string {
  if (recipient !== null) return recipient
  if (chat !== null && sender !== null) return isGroup(chat) ? chat : sender
  return old_body === null ? '' : otherSideOf(old_body)
}

function toRecord(row: EventRow, state: DeliveryFilter | undefined): EventRecord {
  return {
    id: row.id,
    kind: row.kind,
    timestamp: row.timestamp,
    createdAt: row.created_at,
    messageId: row.message_id,
    with: otherSide(row),
    delivery: toSummary(row, state),
  }
}
