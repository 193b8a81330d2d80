import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { DeliveryState } from '../domain/delivery.ts'
import { type EventKind, type IncomingMessage, incomingBody, incomingKey } from '../domain/event.ts'
import { type EventId, type InstanceId, newEventId } from '../domain/ids.ts'
import type { Appending } from './appending.ts'
import type { Core } from './core.ts'
import { seqBefore, toPage } from './cursor.ts'
import { type SummaryRow, toSummary, withLatestDelivery } from './delivery-summary.ts'
import { EventDetails } from './event-detail.ts'
import type { Operation } from './operation.ts'
import type { Readiness } from './schema/events.ts'
import type { EventDetail, EventRecord, Events, Lease, Page, PageRequest } from './store.ts'

interface Incoming {
  lease: Lease
  message: IncomingMessage
  digest: Uint8Array
  now: number
}

interface EventRow extends SummaryRow {
  seq: number
  id: string
  kind: EventKind
  timestamp: number
  created_at: number
  message_id: string | null
}

export class StoredEvents implements Events {
  readonly #core: Core
  readonly #record: Operation<Incoming, { recorded: boolean; owed: boolean }>
  readonly #details: EventDetails

  constructor(core: Core, appending: Appending) {
    this.#core = core
    this.#record = incomingOperation(appending)
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
    let query = withLatestDelivery(this.#core.statements.db.selectFrom('events'))
      .select(['events.id', 'events.kind', 'events.timestamp', 'events.created_at', 'events.message_id'])
      .where('events.instance_id', '=', instanceId)
    if (filter.kind !== undefined) query = query.where('events.kind', '=', filter.kind)
    const before = seqBefore(page)
    const seq = filter.state === undefined ? sql.ref<number>('events.seq') : sql.ref<number>(seqOfState(filter.state))
    if (filter.state === 'delivered' || filter.state === 'exhausted') {
      query = query.where('done.state', '=', filter.state).where('open.seq', 'is', null)
    } else if (filter.state === 'blocked') {
      query = query.where('open.readiness', '=', sql.lit<Readiness>('blocked'))
    } else if (filter.state === 'pending') {
      query = query.where('open.readiness', 'in', [sql.lit<Readiness>('first'), sql.lit<Readiness>('retry')])
    }
    const rows = await this.#core.reader.query(
      query
        .select(seq.as('seq'))
        .where(seq, '<', before)
        .orderBy(seq, 'desc')
        .limit(page.limit + 1),
    )
    return toPage(rows, page.limit, toRecord)
  }

  find(instanceId: InstanceId, id: EventId): Promise<EventDetail | null> {
    return this.#details.find(instanceId, id)
  }

  async listReceived(instanceId: InstanceId, limit: number): Promise<{ id: EventId; createdAt: number; body: string }[]> {
    return this.#core.reader.query(
      this.#core.statements.db
        .selectFrom('events')
        .select(['id', 'created_at as createdAt', 'body'])
        .where('instance_id', '=', instanceId)
        .where('kind', '=', 'message.received')
        .orderBy('seq', 'desc')
        .limit(limit),
    )
  }
}

/** Where a state is asked for, the list is in the order of the deliveries, whose index it walks. */
function seqOfState(state: DeliveryState): 'open.seq' | 'done.seq' {
  return state === 'pending' || state === 'blocked' ? 'open.seq' : 'done.seq'
}

function incomingOperation(appending: Appending): Operation<Incoming, { recorded: boolean; owed: boolean }> {
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
    delivery: toSummary(row),
  }
}
