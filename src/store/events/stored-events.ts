import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import type { DeliveryFilter } from '../../domain/events/delivery.ts'
import type { Reach } from '../../domain/events/endpoint.ts'
import { type EventKind, otherSideOf } from '../../domain/events/event.ts'
import type { FeedPlace } from '../../domain/events/feed-place.ts'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { IncomingChange, IncomingMessage } from '../../domain/incoming-message.ts'
import type { MediaTerms } from '../../domain/media.ts'
import { type SummaryRow, toSummary, withLatestDelivery } from '../deliveries/delivery-summary.ts'
import type { Core } from '../engine/core.ts'
import { countFitting, idBefore, toPage } from '../engine/cursor.ts'
import type { Operation } from '../engine/operation.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Database } from '../engine/schema/database.ts'
import { IS_POSTED_BY_DEFAULT } from '../engine/schema/events.ts'
import type { Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'
import { newReceivedFile } from '../media/received-files.ts'
import {
  digestsOf,
  findKnownStatement,
  type Incoming,
  type IncomingOutcome,
  incomingOperation,
  isGroup,
} from '../messages/incoming.ts'
import { changeOperation } from '../messages/incoming-changes.ts'
import { FEW, type Slice, search, WINDOW } from '../messages/searching.ts'
import { EventDetails } from './event-detail.ts'
import { EventFeed } from './event-feed.ts'
import type { EventRecorder } from './event-recorder.ts'
import type { EventDetail, EventFilter, EventRecord, Events, FeedPage, FeedQuery } from './events.ts'

interface EventRow extends SummaryRow {
  id: string
  kind: EventKind
  timestamp: number
  created_at: number
  message_id: string | null
  recipient: string | null
  chat: string | null
  sender: string | null
  written: number | null
  short_body: string | null
}

/** Lists do not read longer bodies. */
const MAX_LISTED_BODY_BYTES = 16 * 1024

export class StoredEvents implements Events {
  readonly #core: Core
  readonly #record: Operation<Incoming, IncomingOutcome>
  readonly #recordChange
  readonly #findKnown
  readonly #details: EventDetails
  readonly #feed: EventFeed

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#findKnown = findKnownStatement(core.statements)
    this.#record = incomingOperation(core.statements, recorder, this.#findKnown)
    this.#recordChange = changeOperation(core.statements, recorder, this.#findKnown)
    this.#details = new EventDetails(core)
    this.#feed = new EventFeed(core)
  }

  async storeIncoming(
    lease: Lease,
    message: IncomingMessage,
    now: number,
    terms: MediaTerms | null = null,
  ): Promise<'recorded' | 'duplicate'> {
    const { recorded, deliverable } = await this.#core.write(this.#record, {
      lease,
      message,
      file: newReceivedFile(this.#core.sealing, lease.instanceId, message, terms, now),
      digests: digestsOf(message),
      now,
    })
    if (deliverable) this.#core.hints.publish('deliveries', lease.instanceId)
    if (recorded) this.#core.hints.publish('log', lease.instanceId)
    return recorded ? 'recorded' : 'duplicate'
  }

  async recordChange(lease: Lease, change: IncomingChange, now: number): Promise<'recorded' | 'duplicate' | 'ignored'> {
    const input = { lease, change, digests: digestsOf(change), now }
    const { outcome, deliverable } = await this.#core.write(this.#recordChange, input)
    if (deliverable) this.#core.hints.publish('deliveries', lease.instanceId)
    if (outcome === 'recorded') this.#core.hints.publish('log', lease.instanceId)
    return outcome
  }

  async isRecorded(instanceId: InstanceId, message: IncomingMessage | IncomingChange): Promise<boolean> {
    const keys = digestsOf(message).map(digest => ({ instance_id: instanceId, digest }))
    return (await this.#core.reader.each(this.#findKnown, keys)).length > 0
  }

  async list(instanceId: InstanceId, page: PageRequest, filter: EventFilter = {}): Promise<Page<EventRecord>> {
    const { reader, statements } = this.#core
    const { db } = statements
    const { state, kind, endpointId } = filter
    const slice: Slice = { below: idBefore(page, 'evt'), from: '' }
    const limit = page.limit + 1
    const isIndexed = kind === undefined && endpointId === undefined && state !== 'not_posted'
    const isByState = state !== undefined && state !== 'not_posted'
    const ids = (part: Slice, count: number) => idsOfState(statements, instanceId, state, part, count)
    const find = (part: Slice, atMost: number, among: number) => {
      const events = isByState
        ? db
            .selectFrom('events')
            .select(LISTED)
            .where(statements.dialect.isAmong('id', ids(part, among)))
        : eventsBelow(statements, instanceId, part.below, among)
      let query = withOtherSide(withLatestDelivery(selectFrom(db, events), state, endpointId))
        .select(['events.id', 'events.kind', 'events.timestamp', 'events.created_at', 'events.message_id'])
        .where('events.instance_id', '=', instanceId)
        .where('events.id', '>=', part.from)
        .orderBy('events.id', 'desc')
        .limit(atMost)
      if (kind !== undefined) query = query.where('events.kind', '=', kind)
      if (endpointId !== undefined) query = query.where(IS_SHOWN[state ?? 'any'])
      if (state === 'not_posted')
        query = query.where(sql<boolean>`open.seq is null and done.seq is null and ${IS_POSTED_BY_DEFAULT}`)
      return reader.query(query)
    }
    const edge = async (part: Slice, distance: number) => {
      const end = ids(part, distance + 1).offset(distance)
      const [row] = await reader.query(end.limit(1))
      return row?.id ?? null
    }
    // SQLite reads whole rows to find one by its ID, which would block the process.
    const isSqlite = statements.dialect.kind === 'sqlite'
    const isFast = isIndexed && !(isSqlite && isByState)
    const rows = isFast
      ? await find(slice, limit, limit)
      : await search(instanceId, slice, limit, edge, find, isSqlite ? FEW : WINDOW)
    return toPage(
      rows,
      page.limit,
      row => row.id,
      row => toRecord(row, state),
    )
  }

  find(instanceId: InstanceId, id: EventId, reach: Reach = 'own'): Promise<EventDetail | null> {
    return this.#details.find(instanceId, id, reach)
  }

  readFeed(instanceId: InstanceId, query: FeedQuery): Promise<FeedPage | null> {
    return this.#feed.read(instanceId, query)
  }

  findFeedEnd(instanceId: InstanceId): Promise<FeedPlace> {
    return this.#feed.findLast(instanceId)
  }

  async listReceived(
    instanceId: InstanceId,
    limit: number,
  ): Promise<{ id: EventId; createdAt: number; body: string }[]> {
    const received = this.#core.statements.db
      .selectFrom('events')
      .where('instance_id', '=', instanceId)
      .where('kind', '=', 'message.received')
      .orderBy('id', 'desc')
    const sizes = await this.#core.reader.query(
      received.select(['id', sql<number>`octet_length(body)`.as('bytes')]).limit(limit),
    )
    const count = countFitting(sizes, limit)
    const oldest = sizes[count - 1]
    if (oldest === undefined) return []
    return this.#core.reader.query(
      received.select(['id', 'created_at as createdAt', 'body']).where('id', '>=', oldest.id).limit(count),
    )
  }
}

/**
 * The IDs of the first `count` events with a latest delivery in `state`, highest first. Each state has its own
 * index. Without a state, and for `not_posted`, these are all IDs.
 */
function idsOfState(
  statements: Statements,
  instanceId: InstanceId,
  state: DeliveryFilter | undefined,
  { below, from }: Slice,
  count: number,
): SelectQueryBuilder<Database, 'events', { id: EventId }> {
  if (state === undefined || state === 'not_posted') {
    const ids = selectFrom(statements.db, eventsBelow(statements, instanceId, below, count)).select('events.id')
    return ids.where('events.instance_id', '=', instanceId).where('events.id', '>=', from).orderBy('events.id', 'desc')
  }
  const open = state === 'pending' || state === 'retrying' || state === 'blocked'
  const ids = statements.db
    .selectFrom(open ? 'deliveries' : 'finished_deliveries')
    .select('event_id as id')
    // Several endpoints may have a delivery in this state.
    .distinct()
    .where('instance_id', '=', instanceId)
    .where('event_id', '<', below)
    .where('event_id', '>=', from)
    .where(conditionOfState(state))
    .orderBy('event_id', 'desc')
    .limit(count)
  // Only the result matters to the caller.
  return ids as unknown as SelectQueryBuilder<Database, 'events', { id: EventId }>
}

/** The columns of `events` that lists read, with the body only if it is short. */
const LISTED = [
  'instance_id',
  'id',
  'kind',
  'timestamp',
  'created_at',
  'message_id',
  sql<string | null>`case when octet_length(body) <= ${sql.lit(MAX_LISTED_BODY_BYTES)} then body end`.as('short_body'),
] as const

/**
 * The next `count` events, highest ID first. On SQLite, events of other instances may follow this instance's last
 * event: to compare a row with a lower bound, SQLite would read the whole row with its body.
 */
function eventsBelow({ db, dialect }: Statements, instanceId: InstanceId, below: string, count: number) {
  const query = db
    .selectFrom('events')
    .select(LISTED)
    .where(sql<boolean>`(instance_id, id) < (${instanceId}, ${below})`)
    .orderBy('instance_id', 'desc')
    .orderBy('id', 'desc')
    .limit(count)
  return dialect.kind === 'sqlite' ? query : query.where('instance_id', '=', instanceId)
}

/** Selects from a subquery as if it were the table of the events. */
function selectFrom(db: Kysely<Database>, events: SelectQueryBuilder<Database, 'events', object>) {
  return db.selectFrom(events.as('events') as never) as unknown as SelectQueryBuilder<Database, 'events', unknown>
}

/** A literal, not a parameter: SQLite uses a partial index only if the query states the index's condition. */
function conditionOfState(state: Exclude<DeliveryFilter, 'not_posted'>) {
  if (state === 'pending') return sql<boolean>`readiness <> 'blocked'`
  if (state === 'retrying') return sql<boolean>`readiness = 'retry'`
  if (state === 'blocked') return sql<boolean>`readiness = 'blocked'`
  return sql<boolean>`state = ${sql.lit(state)} and superseded = 0`
}

/** Whether one of the joined deliveries, which are to one endpoint, is in the state. */
const IS_SHOWN = {
  pending: sql<boolean>`open.readiness <> 'blocked'`,
  retrying: sql<boolean>`open.readiness = 'retry'`,
  blocked: sql<boolean>`open.readiness = 'blocked'`,
  delivered: sql<boolean>`done.state = 'delivered'`,
  exhausted: sql<boolean>`done.state = 'exhausted'`,
  not_posted: sql<boolean>`open.seq is null and done.seq is null`,
  any: sql<boolean>`(open.seq is not null or done.seq is not null)`,
} as const satisfies Record<DeliveryFilter | 'any', unknown>

/** Selects the columns that name the other party of an event: those of its message or, without one, a short body. */
function withOtherSide<O>(query: SelectQueryBuilder<Database, 'events', O>) {
  return query
    .leftJoin('messages as sent', join =>
      join.onRef('sent.instance_id', '=', 'events.instance_id').onRef('sent.id', '=', 'events.message_id'),
    )
    .leftJoin('incoming_messages as received', join =>
      join.onRef('received.instance_id', '=', 'events.instance_id').onRef('received.id', '=', 'events.message_id'),
    )
    .select(['sent.recipient', 'received.chat', 'received.sender', 'received.written'])
    .select(
      sql<string | null>`case when sent.id is null and received.id is null then events.short_body end`.as('short_body'),
    )
}

function otherSide({ recipient, chat, sender, written, short_body }: EventRow): string {
  if (recipient !== null) return recipient
  if (chat !== null && sender !== null) return isGroup(chat) || written !== null ? chat : sender
  return short_body === null ? '' : otherSideOf(short_body)
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
