import { CHANGE_EVENT_KINDS } from '../../domain/events/event.ts'
import { type EventId, firstMessageId, type InstanceId } from '../../domain/ids.ts'
import type { Names } from '../conversations/chat-lines.ts'
import { readEntries } from '../conversations/read-entries.ts'
import type { Core } from '../engine/core.ts'
import { measure } from '../messages/sizes.ts'
import { ContactRows, NAMING_TABLES } from './contact-rows.ts'
import { GroupMemberships } from './group-memberships.ts'
import { NamingEvents, split } from './naming-events.ts'
import type { ContactData, ContactEvent, ContactMessage } from './retention.ts'

/** Reads the stored data of one contact, a few rows at a time: what its erasure removes, and the person's groups. */
export class ContactExport {
  readonly #core: Core
  readonly #rows: ContactRows
  readonly #groups: GroupMemberships
  readonly #events: NamingEvents

  constructor(core: Core) {
    this.#core = core
    this.#rows = new ContactRows(core)
    this.#groups = new GroupMemberships(core)
    this.#events = new NamingEvents(core)
  }

  async open(instanceId: InstanceId, contact: string, now: number): Promise<ContactData> {
    const names = await this.#rows.findNames(instanceId, contact)
    // Messages of this millisecond have higher IDs than its first one.
    const top = firstMessageId(now + 1)
    return {
      names: names.chats,
      entries: await this.#findEntries(instanceId, names),
      messages: () => this.#readMessages(instanceId, names, top),
      events: () => this.#readEvents(instanceId, names, now),
    }
  }

  async #findEntries(instanceId: InstanceId, names: Names): Promise<ContactData['entries']> {
    const { db } = this.#core.statements
    const { chats } = names
    const rows: [string, object[]][] = []
    for (const table of NAMING_TABLES)
      rows.push([
        table,
        await this.#core.reader.query(
          db.selectFrom(table).selectAll().where('instance_id', '=', instanceId).where('number', 'in', chats),
        ),
      ])
    const uses = db
      .selectFrom('pace_uses')
      .selectAll()
      .where('instance_id', '=', instanceId)
      .where('recipient', 'in', chats)
    rows.push(['pace_uses', await this.#core.reader.query(uses)])
    rows.push(['groups', await this.#groups.findGroups(instanceId, names)])
    return Object.fromEntries(rows)
  }

  async *#readMessages(instanceId: InstanceId, names: Names, top: string): AsyncGenerator<ContactMessage, void> {
    for await (const found of this.#rows.walk(instanceId, names, top)) {
      const sizes = await measure(
        this.#core,
        instanceId,
        found.map(({ id }) => id),
      )
      // A message that was erased in the meantime is left out.
      const there = found.flatMap(({ id }) => sizes.get(id) ?? [])
      yield* readEntries(this.#core, instanceId, there)
    }
  }

  async *#readEvents(instanceId: InstanceId, names: Names, now: number): AsyncGenerator<ContactEvent, void> {
    const { db } = this.#core.statements
    // Edits and deletions by the person in groups are found in both ways.
    const changes = new Set<EventId>()
    for await (const found of this.#rows.walk(instanceId, names, firstMessageId(now + 1))) {
      // The events of an answer in a group do not name the person.
      const ids = found.filter(({ stays }) => stays !== 'answer').map(({ id }) => id)
      if (ids.length === 0) continue
      const events = await this.#core.reader.query(
        db
          .selectFrom('events')
          .select(['id', 'kind', 'message_id as messageId', 'created_at as createdAt', 'body'])
          .where('instance_id', '=', instanceId)
          .where('message_id', 'in', ids)
          .orderBy('seq')
          .orderBy('id'),
      )
      for (const { id, kind } of events) if (CHANGE_EVENT_KINDS.some(change => change === kind)) changes.add(id)
      yield* await this.#withAttempts(instanceId, events)
    }
    for await (const found of this.#events.walk(instanceId, names)) {
      const events = found.filter(({ id, createdAt }) => createdAt <= now && !changes.has(id))
      // Without the other people.
      const own = events.map(event => ({ ...event, body: split(event, names)?.person ?? '' }))
      yield* await this.#withAttempts(instanceId, own)
    }
  }

  async #withAttempts(
    instanceId: InstanceId,
    events: readonly Omit<ContactEvent, 'attempts'>[],
  ): Promise<ContactEvent[]> {
    if (events.length === 0) return []
    const { db } = this.#core.statements
    const attempts = await this.#core.reader.query(
      db
        .selectFrom('attempts')
        .select(['event_id', 'url', 'started_at', 'status', 'error', 'response_excerpt'])
        .where('instance_id', '=', instanceId)
        .where(
          'event_id',
          'in',
          events.map(({ id }) => id),
        )
        .orderBy('started_at'),
    )
    const attemptsOf = Map.groupBy(attempts, row => row.event_id)
    return events.map(({ id, messageId, createdAt, body }) => ({
      id,
      messageId,
      createdAt,
      body,
      attempts: (attemptsOf.get(id) ?? []).map(row => ({
        url: row.url,
        startedAt: row.started_at,
        status: row.status,
        error: row.error,
        responseExcerpt: row.response_excerpt,
      })),
    }))
  }
}
