import { sql } from 'kysely'
import type { EventKind } from '../../domain/event.ts'
import type { EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'

export interface NewEvent {
  instanceId: InstanceId
  id: EventId
  kind: EventKind
  timestamp: number
  createdAt: number
  messageId: MessageId | null
  incomingDigest: Uint8Array | null
  body: string
}

interface RecordedEvents {
  /** The events that were not recorded before. */
  events: ReadonlySet<EventId>
  /** Instances with a new delivery that may start now. */
  deliverable: ReadonlySet<InstanceId>
}

interface NewDelivery {
  instance_id: InstanceId
  event_id: EventId
  message_id: MessageId | null
  url: string
  readiness: 'first' | 'blocked'
  blocked_by: EventId | null
  due_at: number
}

/** Writes events and their deliveries in the same commit as the change that they report. */
export class EventRecorder {
  readonly #statements

  constructor(statements: Statements) {
    this.#statements = prepare(statements)
  }

  /** @param events the events of each message in their order */
  async record(tx: Transaction, events: readonly NewEvent[]): Promise<RecordedEvents> {
    const [recorded, urls] = await Promise.all([this.#insertEvents(tx, events), this.#urls(tx, events)])
    const posted = recorded.filter(event => urls.has(event.instanceId))
    const latest = await this.#latestUnfinished(tx, posted)
    const deliveries: NewDelivery[] = []
    const deliverable = new Set<InstanceId>()
    for (const event of posted) {
      const { instanceId: instance_id, id: event_id } = event
      const message_id = chainOf(event)
      const key = `${instance_id}/${message_id}`
      const blocked_by = message_id === null ? null : (latest.get(key) ?? null)
      if (message_id !== null) latest.set(key, event_id)
      if (blocked_by === null) deliverable.add(instance_id)
      const readiness = blocked_by === null ? 'first' : 'blocked'
      const url = urls.get(instance_id)!
      deliveries.push({ instance_id, event_id, message_id, url, readiness, blocked_by, due_at: event.createdAt })
    }
    if (deliveries.length > 0) tx.post(this.#statements.insertDelivery, deliveries)
    return { events: new Set(recorded.map(event => event.id)), deliverable }
  }

  async #insertEvents(tx: Transaction, events: readonly NewEvent[]): Promise<NewEvent[]> {
    const rows = events.map(event => ({
      instance_id: event.instanceId,
      id: event.id,
      kind: event.kind,
      timestamp: event.timestamp,
      created_at: event.createdAt,
      message_id: event.messageId,
      incoming_digest: event.incomingDigest,
      body: event.body,
    }))
    const inserted = await tx.each(this.#statements.insertEvent, rows)
    const ids = new Set(inserted.map(row => row.id))
    return events.filter(event => ids.has(event.id))
  }

  /** The current webhook URLs, locked until the commit. */
  async #urls(tx: Transaction, events: readonly NewEvent[]): Promise<Map<InstanceId, string>> {
    const ids = new Set(events.map(event => event.instanceId))
    if (ids.size === 0) return new Map()
    const rows = await tx.each(
      this.#statements.findUrl,
      [...ids].map(id => ({ id })),
    )
    return new Map(rows.flatMap(({ id, webhook_url }) => (webhook_url === null ? [] : [[id, webhook_url] as const])))
  }

  /** By message: the event whose delivery blocks the next one. The delivery is locked until the commit. */
  async #latestUnfinished(tx: Transaction, events: readonly NewEvent[]): Promise<Map<string, EventId>> {
    const messages = new Map<string, { instance_id: InstanceId; message_id: MessageId }>()
    for (const event of events) {
      const { instanceId: instance_id } = event
      const message_id = chainOf(event)
      if (message_id !== null) messages.set(`${instance_id}/${message_id}`, { instance_id, message_id })
    }
    if (messages.size === 0) return new Map()
    const rows = await tx.each(this.#statements.findUnfinished, [...messages.values()])
    rows.sort((a, b) => a.seq - b.seq)
    return new Map(rows.map(row => [`${row.instance_id}/${row.message_id}`, row.event_id]))
  }
}

/** The events of a message wait for its earlier ones. A received message has a single event. */
const WAITS: Record<EventKind, boolean> = {
  'message.received': false,
  'message.sent': true,
  'message.delivered': true,
  'message.read': true,
  'message.failed': true,
}

/** The message whose earlier events block this one; null if nothing blocks it. */
function chainOf({ kind, messageId }: NewEvent): MessageId | null {
  return WAITS[kind] ? messageId : null
}

function prepare(statements: Statements) {
  return {
    insertEvent: statements.insert(
      'events',
      {
        instance_id: 'text',
        id: 'text',
        kind: 'text',
        timestamp: 'integer',
        created_at: 'integer',
        message_id: 'text?',
        incoming_digest: 'blob?',
        body: 'text',
      },
      {
        finish: query =>
          query
            .onConflict(oc =>
              oc.columns(['instance_id', 'incoming_digest']).where('incoming_digest', 'is not', null).doNothing(),
            )
            .returning('id'),
      },
    ),

    findUrl: statements.find('instances', { id: 'text' }, ['id', 'webhook_url'], { lock: 'share' }),

    findUnfinished: statements.find(
      'deliveries',
      { instance_id: 'text', message_id: 'text' },
      ['instance_id', 'message_id', 'event_id', 'seq'],
      { lock: 'update' },
    ),

    insertDelivery: statements.insert(
      'deliveries',
      {
        instance_id: 'text',
        event_id: 'text',
        message_id: 'text?',
        url: 'text',
        readiness: 'text',
        blocked_by: 'text?',
        due_at: 'integer',
      },
      { fixed: { attempts: sql.lit(0), redelivery: sql.lit(0) } },
    ),
  }
}
