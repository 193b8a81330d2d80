import { type InsertQueryBuilder, type InsertResult, sql } from 'kysely'
import {
  DEFAULT_ENDPOINT,
  DEFAULT_EVENTS,
  isSubscribed,
  OPERATOR_EVENT_KINDS,
  type Reach,
} from '../../domain/events/endpoint.ts'
import { CHANGE_EVENT_KINDS, type EventKind, MEDIA_EVENT_KINDS } from '../../domain/events/event.ts'
import type { EndpointId, EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { Traceparent } from '../../domain/trace-context.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Database } from '../engine/schema/database.ts'
import type { RowOf, Statements } from '../engine/statement.ts'

const EVENT = {
  instance_id: 'text',
  id: 'text',
  kind: 'text',
  timestamp: 'integer',
  created_at: 'integer',
  message_id: 'text?',
  incoming_digest: 'blob?',
  body: 'text',
} as const

/** For a separate statement, so that events without a trace context have no extra cost. */
const TRACED = { ...EVENT, traceparent: 'text?' } as const

/** A row of `events`, without its number. */
export type NewEvent = RowOf<typeof EVENT> & {
  kind: EventKind
  /** Another event of its message will follow and wait for this one. Status events need not set it. */
  hasSuccessor?: boolean
  /** The trace context of the event's message. */
  traceparent?: Traceparent | null
}

/** The number of an event: one more than the number of the instance's last event, even if that event was erased. */
const NEXT_SEQ = sql<number>`row_number() over (partition by input.instance_id order by input.seq) +
  (select coalesce(max(last.seq), 0) from (
    select max(e.seq) as seq from events as e where e.instance_id = input.instance_id
    union all select f.erased_to from event_feeds as f where f.instance_id = input.instance_id) as last)`

interface RecordedEvents {
  /** The events that were not recorded before. */
  events: ReadonlySet<EventId>
  /** Instances with a new delivery that may start now. */
  deliverable: ReadonlySet<InstanceId>
}

/** An event to post to an endpoint. */
interface Posted {
  event: NewEvent
  to: Subscription
  /** The message whose earlier events block this one; null if nothing blocks it. */
  waitsBehind: MessageId | null
}

interface NewDelivery {
  instance_id: InstanceId
  event_id: EventId
  endpoint_id: EndpointId
  message_id: MessageId | null
  url: string
  readiness: 'first' | 'blocked'
  blocked_by: EventId | null
  due_at: number
}

/**
 * Writes events and their deliveries in the same commit as the change that they report.
 *
 * Each event gets the next number of its instance under a lock that lasts until the commit, so events become visible in the
 * order of their numbers, whichever node records them.
 */
export class EventRecorder {
  readonly #statements
  readonly #subscriptions: Subscriptions

  constructor(statements: Statements) {
    this.#statements = prepare(statements)
    this.#subscriptions = new Subscriptions(statements)
  }

  /** @param events the events of each instance in their order */
  async record(tx: Transaction, events: readonly NewEvent[]): Promise<RecordedEvents> {
    const { insertEvent, insertTraced, insertDelivery } = this.#statements
    const inOrder: (NewEvent & { seq: number; traceparent: Traceparent | null })[] = []
    const instances = new Set<InstanceId>()
    let reach: Reach = 'own'
    let isTraced = false
    // `seq` is only the order within this call: the insert replaces it (`NEXT_SEQ`).
    for (const [seq, event] of events.entries()) {
      const { traceparent = null } = event
      inOrder.push({ ...event, seq, traceparent })
      if (traceparent !== null) isTraced = true
      instances.add(event.instance_id)
      // Operator endpoints are read, and locked, only for the few events that they may receive.
      if (OPERATOR_EVENT_KINDS.has(event.kind)) reach = 'all'
    }
    // The lock comes first, so that the insert sees the numbers of all earlier commits.
    const [subscriptions, inserted] = await Promise.all([
      this.#subscriptions.find(tx, instances, reach),
      isTraced ? tx.each(insertTraced, inOrder) : tx.each(insertEvent, inOrder),
    ])
    const recorded = new Set<EventId>()
    for (const { id } of inserted) recorded.add(id)
    const posted: Posted[] = []
    for (const event of events) {
      if (!recorded.has(event.id)) continue
      const waitsBehind = WAITS.has(event.kind) ? event.message_id : null
      for (const to of subscriptions.get(event.instance_id) ?? [])
        if (isSubscribed(to.events, event.kind)) posted.push({ event, to, waitsBehind })
    }
    const latest = await this.#latestUnfinished(tx, posted)
    const deliveries: NewDelivery[] = []
    const deliverable = new Set<InstanceId>()
    for (const { event, to, waitsBehind } of posted) {
      const { instance_id, id: event_id, created_at: due_at } = event
      const { id: endpoint_id, url } = to
      const message_id = event.hasSuccessor ? event.message_id : waitsBehind
      const key = `${instance_id}/${message_id}/${endpoint_id}`
      const blocked_by = message_id === null ? null : (latest.get(key) ?? null)
      if (message_id !== null) latest.set(key, event_id)
      if (blocked_by === null) deliverable.add(instance_id)
      const readiness = blocked_by === null ? 'first' : 'blocked'
      deliveries.push({ instance_id, event_id, endpoint_id, message_id, url, readiness, blocked_by, due_at })
    }
    if (deliveries.length > 0) tx.post(insertDelivery, deliveries)
    return { events: recorded, deliverable }
  }

  /** The events whose deliveries block the next ones, by message and endpoint. Each delivery is locked until the commit. */
  async #latestUnfinished(tx: Transaction, posted: readonly Posted[]): Promise<Map<string, EventId>> {
    const messages = new Map<string, { instance_id: InstanceId; message_id: MessageId }>()
    for (const { event, waitsBehind: message_id } of posted) {
      if (message_id === null) continue
      const { instance_id } = event
      messages.set(`${instance_id}/${message_id}`, { instance_id, message_id })
    }
    const latest = new Map<string, EventId>()
    if (messages.size === 0) return latest
    const rows = await tx.each(this.#statements.findUnfinished, [...messages.values()])
    rows.sort((a, b) => a.seq - b.seq)
    for (const { instance_id, message_id, endpoint_id, event_id } of rows)
      latest.set(`${instance_id}/${message_id}/${endpoint_id}`, event_id)
    return latest
  }
}

/** Where an instance's next events go. */
export interface Subscription {
  id: EndpointId
  url: string
  events: readonly string[]
}

/**
 * Reads the endpoints of instances in a transaction. The instances and the endpoints are locked until its commit.
 *
 * An endpoint that was deleted by the deletion of its instance still receives the instance's last events.
 */
export class Subscriptions {
  readonly #findDefault
  readonly #findOthers
  readonly #findOperators

  constructor(statements: Statements) {
    const operators = statements.db.selectFrom('operator_endpoints').select(['id', 'url', 'events'])
    this.#findOperators = statements.locking(operators.where('deleted_at', 'is', null), 'share', 'operator_endpoints')
    this.#findDefault = statements.find(
      'instances',
      { id: 'text' },
      ['id', 'webhook_url', 'webhook_events', 'deleted_at'],
      { lock: 'no key update' },
    )
    this.#findOthers = statements.find(
      'endpoints',
      { instance_id: 'text' },
      ['instance_id', 'id', 'url', 'events', 'deleted_at'],
      { lock: 'share' },
    )
  }

  async find(
    tx: Transaction,
    instances: Iterable<InstanceId>,
    reach: Reach = 'own',
  ): Promise<Map<InstanceId, Subscription[]>> {
    const rows: { id: InstanceId; instance_id: InstanceId }[] = []
    for (const id of instances) rows.push({ id, instance_id: id })
    const found = new Map<InstanceId, Subscription[]>()
    if (rows.length === 0) return found
    // One round trip for all. The second statement sees what was committed while the first one waited for its lock.
    const [defaults, others, operators] = await Promise.all([
      tx.each(this.#findDefault, rows),
      tx.each(this.#findOthers, rows),
      reach === 'all' ? tx.query(this.#findOperators) : [],
    ])
    const deletedAt = new Map<InstanceId, number | null>()
    for (const { id, webhook_url: url, webhook_events, deleted_at } of defaults) {
      found.set(id, url === null ? [] : [{ id: DEFAULT_ENDPOINT, url, events: eventsOf(webhook_events) }])
      deletedAt.set(id, deleted_at)
    }
    for (const { instance_id, id, url, events, deleted_at } of others)
      if (deleted_at === null || deleted_at === deletedAt.get(instance_id))
        found.get(instance_id)?.push({ id, url, events: eventsOf(events) })
    for (const { id, url, events } of operators)
      for (const subscriptions of found.values()) subscriptions.push({ id, url, events: eventsOf(events) })
    return found
  }
}

/** @param stored null: the kinds of the contract */
export function eventsOf(stored: string | null): readonly string[] {
  return stored === null ? DEFAULT_EVENTS : JSON.parse(stored)
}

/** The kinds of events that wait for the earlier events of their message. */
const WAITS: ReadonlySet<EventKind> = new Set([
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
  ...MEDIA_EVENT_KINDS,
  ...CHANGE_EVENT_KINDS,
])

/** Inserts only events that are not recorded yet. */
const ONCE = {
  fixed: { seq: NEXT_SEQ },
  finish: (query: InsertQueryBuilder<Database, 'events', InsertResult>) =>
    query
      .onConflict(oc =>
        oc.columns(['instance_id', 'incoming_digest']).where('incoming_digest', 'is not', null).doNothing(),
      )
      .returning('id'),
}

function prepare(statements: Statements) {
  return {
    insertEvent: statements.insert('events', { ...EVENT, seq: 'integer' } as const, ONCE),

    insertTraced: statements.insert('events', { ...TRACED, seq: 'integer' } as const, ONCE),

    findUnfinished: statements.find(
      'deliveries',
      { instance_id: 'text', message_id: 'text' },
      ['instance_id', 'message_id', 'endpoint_id', 'event_id', 'seq'],
      { lock: 'update' },
    ),

    insertDelivery: statements.insert(
      'deliveries',
      {
        instance_id: 'text',
        event_id: 'text',
        endpoint_id: 'text',
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
