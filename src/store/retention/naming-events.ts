import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { CHANGE_EVENT_KINDS, type EventKind } from '../../domain/events/event.ts'
import type { EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { Names } from '../conversations/chat-lines.ts'
import type { Core } from '../engine/core.ts'
import { splitGroupChange } from './group-memberships.ts'
import { HAS_NO_MESSAGE } from './old-rows.ts'

/** Events that one query examines. */
const WINDOW = 1_000
/** Events whose bodies one query reads. */
const STEP = 50

/** An event that names the person. */
export interface NamingEvent {
  id: EventId
  kind: EventKind
  messageId: MessageId | null
  createdAt: number
  body: string
}

/** The fields of the events about messages that name a person. */
interface Named {
  from?: string
  addressing?: string
  to?: string
  chat?: string
  phone?: string | null
  lid?: string | null
  by?: string | null
}

/**
 * Finds the events that name a person although no stored message of the person leads to them: those about the members of
 * groups, those whose message is unknown or erased, and edits and deletions by the person.
 */
export class NamingEvents {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  /** Examines all events of the instance, the newest first, because there is no index for these. */
  async *walk(instanceId: InstanceId, names: Names): AsyncGenerator<readonly NamingEvent[], void> {
    const { db } = this.#core.statements
    for (let below: number | null = Number.MAX_SAFE_INTEGER; below !== null; ) {
      const rows: { id: EventId; seq: number | null; kind: EventKind; isAlone: number }[] =
        await this.#core.reader.query(
          db
            .selectFrom('events as e')
            .select(['e.id', 'e.seq', 'e.kind'])
            .select(sql<number>`case when ${HAS_NO_MESSAGE} then 1 else 0 end`.as('isAlone'))
            .where('e.instance_id', '=', instanceId)
            .where('e.seq', '<', below)
            .orderBy('e.seq', 'desc')
            .limit(WINDOW),
        )
      const alone = new Set(rows.filter(({ isAlone }) => isAlone === 1).map(({ id }) => id))
      const ids = rows.filter(({ id, kind }) => mayName(kind, alone.has(id))).map(({ id }) => id)
      for (let at = 0; at < ids.length; at += STEP) {
        const events = await this.#read(instanceId, ids.slice(at, at + STEP))
        const found = events.filter(
          event => split(event, names) !== null && (alone.has(event.id) || !isInChat(event, names)),
        )
        if (found.length > 0) yield found
      }
      below = rows.length < WINDOW ? null : rows.at(-1)!.seq
      // On SQLite, reads block the event loop, so other calls run in between.
      await setImmediate()
    }
  }

  #read(instanceId: InstanceId, ids: readonly EventId[]): Promise<NamingEvent[]> {
    const { db } = this.#core.statements
    return this.#core.reader.query(
      db
        .selectFrom('events')
        .select(['id', 'kind', 'message_id as messageId', 'created_at as createdAt', 'body'])
        .where('instance_id', '=', instanceId)
        .where('id', 'in', ids)
        .orderBy('seq', 'desc'),
    )
  }
}

/** @param isAlone the event has no stored message */
function mayName(kind: EventKind, isAlone: boolean): boolean {
  if (kind === 'group.changed' || CHANGE_EVENT_KINDS.some(change => change === kind)) return true
  return isAlone && /^(message|media)\./.test(kind)
}

/**
 * @returns the body without the person, and the body with nobody else; null if it does not name the person. An event about a
 * message loses all its data about the message.
 */
export function split(
  { body, messageId }: Pick<NamingEvent, 'body' | 'messageId'>,
  names: Names,
): { others: string; person: string } | null {
  const { event, data } = parse(body)
  if (event === 'group.changed') return splitGroupChange(body, names)
  return isNamed(data, names) ? { others: blanked(body, messageId), person: body } : null
}

/** The body of an event without its data about the message. */
export function blanked(body: string, messageId: MessageId | null): string {
  const { data, ...envelope } = JSON.parse(body) as { data: unknown }
  return JSON.stringify({ ...envelope, data: { id: messageId, erased: true } })
}

function isNamed({ from, addressing, to, chat, phone, lid, by }: Named, { chats }: Names): boolean {
  const named = [addressing === undefined ? from : null, to, chat, phone, lid, by]
  return named.some(name => typeof name === 'string' && chats.includes(name))
}

/** Whether the event is about a message of the person's own chat. If that message is stored, its events are found with it. */
function isInChat({ body }: NamingEvent, { chats }: Names): boolean {
  return chats.includes(parse(body).data.chat ?? '')
}

function parse(body: string): { event: EventKind; data: Named } {
  return JSON.parse(body)
}
