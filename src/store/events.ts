import { createHash } from 'node:crypto'
import { type AliasedExpression, type Kysely, sql } from 'kysely'
import type { DeliveryState } from '../domain/delivery.ts'
import { type EventKind, type IncomingMessage, incomingBody, incomingKey } from '../domain/event.ts'
import { type EventId, type InstanceId, newEventId } from '../domain/ids.ts'
import type { Appending } from './appending.ts'
import { Contacts } from './contacts.ts'
import type { Core } from './core.ts'
import { idBefore, toPage } from './cursor.ts'
import { type SummaryRow, toSummary, withLatestDelivery } from './delivery-summary.ts'
import { EventDetails } from './event-detail.ts'
import type { Operation } from './operation.ts'
import type { Database } from './schema/database.ts'
import { type Slice, search } from './searching.ts'
import type { EventDetail, EventRecord, Events, Lease, Page, PageRequest } from './store.ts'

interface Incoming {
  lease: Lease
  message: IncomingMessage
  digest: Uint8Array
  now: number
}

interface EventRow extends SummaryRow {
  id: string
  kind: EventKind
  timestamp: number
  created_at: number
  message_id: string | null
  body: string
}

export class StoredEvents implements Events {
  readonly #core: Core
  readonly #record: Operation<Incoming, { recorded: boolean; owed: boolean }>
  readonly #details: EventDetails

  constructor(core: Core, appending: Appending) {
    this.#core = core
    this.#record = incomingOperation(appending, new Contacts(core.statements))
    this.#details = new EventDetails(core)
  }

  async recordIncoming(lease: Lease, message: IncomingMessage, now: number): Promise<'recorded' | 'duplicate'> {
    // Digested, so that a stranger's id of any length and content fits.
    const digest = createHash('sha256').update(incomingKey(message)).digest()
    const { recorded, owed } = await this.#core.write(this.#record, { lease, message, digest, now })
    if (owed) this.#core.hints.give('owed', lease.instanceId)
    if (recorded) this.#core.hints.give('log', lease.instanceId)
    return recorded ? 'recorded' : 'duplicate'
  }

  async list(
    instanceId: InstanceId,
    page: PageRequest,
    filter: { state?: DeliveryState | undefined; kind?: EventKind | undefined } = {},
  ): Promise<Page<EventRecord>> {
    const { reader, statements } = this.#core
    const { state, kind } = filter
    const slice: Slice = { below: idBefore(page, 'evt'), from: '' }
    const ids = (part: Slice) =>
      statements.db
        .selectFrom(idsOfState(statements.db, instanceId, state, part))
        .select('ids.id')
        .orderBy('ids.id', 'desc')
    const find = (part: Slice, limit: number) => {
      let query = withLatestDelivery(statements.db.selectFrom('events'))
        .select([
          'events.id',
          'events.kind',
          'events.timestamp',
          'events.created_at',
          'events.message_id',
          'events.body',
        ])
        .where('events.instance_id', '=', instanceId)
        .orderBy('events.id', 'desc')
        .limit(limit)
      if (kind !== undefined) query = query.where('events.kind', '=', kind)
      const shown = kind === undefined ? ids(part).limit(limit) : ids(part)
      return reader.query(query.where('events.id', 'in', shown))
    }
    const edge = async (part: Slice, distance: number) => {
      const [row] = await reader.query(ids(part).offset(distance).limit(1))
      return row?.id ?? null
    }
    const limit = page.limit + 1
    const rows = kind === undefined ? await find(slice, limit) : await search(slice, limit, edge, find)
    return toPage(rows, page.limit, row => row.id, toRecord)
  }

  find(instanceId: InstanceId, id: EventId): Promise<EventDetail | null> {
    return this.#details.find(instanceId, id)
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

/** The ids of the events whose latest delivery is in a state, each state by an index of its own. */
function idsOfState(
  db: Kysely<Database>,
  instanceId: InstanceId,
  state: DeliveryState | undefined,
  { below, from }: Slice,
): AliasedExpression<{ id: EventId }, 'ids'> {
  if (state === undefined) {
    const all = db.selectFrom('events').select('id').where('instance_id', '=', instanceId)
    return all.where('id', '<', below).where('id', '>=', from).as('ids')
  }
  const open = state === 'pending' || state === 'blocked'
  return db
    .selectFrom(open ? 'deliveries' : 'finished_deliveries')
    .select('event_id as id')
    .where('instance_id', '=', instanceId)
    .where('event_id', '<', below)
    .where('event_id', '>=', from)
    .where(conditionOfState(state))
    .as('ids')
}

/** Written out, not bound: SQLite takes a partial index only for a condition that it can read. */
function conditionOfState(state: DeliveryState) {
  if (state === 'pending') return sql<boolean>`readiness <> 'blocked'`
  if (state === 'blocked') return sql<boolean>`readiness = 'blocked'`
  return sql<boolean>`state = ${sql.lit(state)} and superseded = 0`
}

function incomingOperation(
  appending: Appending,
  contacts: Contacts,
): Operation<Incoming, { recorded: boolean; owed: boolean }> {
  return {
    name: 'events.incoming',
    instanceId: ({ lease }) => lease.instanceId,
    keys: ({ digest }) => [Buffer.from(digest).toString('hex')],
    lease: ({ lease }) => lease,
    async run(tx, inputs) {
      const events = inputs.map(({ lease, message, digest, now }) => ({
        instanceId: lease.instanceId,
        id: newEventId(now),
        kind: 'message.received' as const,
        timestamp: message.sentAt,
        createdAt: now,
        messageId: null,
        incomingDigest: digest,
        body: incomingBody(lease.instanceId, message),
      }))
      const appended = await appending.append(tx, events)
      const talks = inputs.filter(({ message }) => message.group === undefined && message.addressing === undefined)
      contacts.note(
        tx,
        talks.map(({ lease, message }) => ({ instanceId: lease.instanceId, with: message.from })),
      )
      return events.map(({ id, instanceId }) => {
        const recorded = appended.events.has(id)
        return { recorded, owed: recorded && appended.owed.has(instanceId) }
      })
    },
  }
}

function toRecord(row: EventRow): EventRecord {
  return {
    id: row.id,
    kind: row.kind,
    timestamp: row.timestamp,
    createdAt: row.created_at,
    messageId: row.message_id,
    body: row.body,
    delivery: toSummary(row),
  }
}
