import { sql } from 'kysely'
import type { MessageExtras } from '../../domain/conversation.ts'
import { firstMessageId, type InstanceId, type MessageId } from '../../domain/ids.ts'
import type { MessageState } from '../../domain/message.ts'
import type { Core } from '../engine/core.ts'
import { countFitting } from '../engine/cursor.ts'
import { measure } from '../messages/sizes.ts'
import { addressOf } from './chat-lines.ts'
import { findNumbers } from './chat-names.ts'
import { type Chat, type InboxChat, type Line, MAX_LAST_TEXT_UNITS, MAX_UNREAD } from './conversations.ts'
import { readEntries } from './read-entries.ts'

const NOTHING = ''

/** Adds the last line and the unread count to all given chats with a few queries, or with more if texts are long. */
export class Inbox {
  readonly #core: Core
  readonly #ends
  readonly #count

  constructor(core: Core) {
    this.#core = core
    this.#ends = endsStatement(core)
    this.#count = countStatement(core)
  }

  /** @returns the first chats, as many as fit on a page */
  async complete(instanceId: InstanceId, chats: readonly Chat[], unreadSince: number): Promise<InboxChat[]> {
    const { reader } = this.#core
    const firstUnread = firstMessageId(unreadSince)
    const named = new Map(chats.map(chat => [chat, namesOf(chat)]))
    const people = await this.#findPeople(instanceId, chats)
    const names = new Set([...named.values(), ...people.values()].flat())
    const keys = Array.from(names, name => ({ instance_id: instanceId, name, address: addressOf(name) }))
    const ends = new Map((await reader.each(this.#ends, keys)).map(row => [row.name, row]))
    const endsOf = (some: readonly string[]) => some.flatMap(name => ends.get(name) ?? [])
    const found = chats.map(chat => {
      const rows = endsOf(named.get(chat)!)
      const sent = latest(rows.map(row => row.sent))
      const received = latest(rows.map(row => row.received))
      const written = latest(rows.map(row => row.written))
      // A person who changed numbers has one conversation, so what is answered or read under one number is so under all.
      const ofPerson = [...rows, ...endsOf(people.get(chat.lid ?? '') ?? [])]
      const after = latest([firstUnread, ...ofPerson.flatMap(row => [row.answered, row.written, markedBy(row.mark)])])
      return { chat, last: latest([sent, received, written]), received, after }
    })
    const sizes = await measure(
      this.#core,
      instanceId,
      found.flatMap(({ last }) => (last === NOTHING ? [] : [last])),
    )
    const shown = found.slice(
      0,
      countFitting(
        found.map(({ last }) => ({ bytes: shownBytes(sizes.get(last)) })),
        found.length,
      ),
    )
    const counted = await reader.each(
      this.#count,
      shown.flatMap(({ chat, after }) => named.get(chat)!.map(name => ({ instance_id: instanceId, name, after }))),
    )
    const counts = new Map(counted.map(({ name, count }) => [name, Number(count)]))
    const lines = new Map<MessageId, Line>()
    const lasts = shown.flatMap(({ last }) => sizes.get(last) ?? [])
    for await (const { id, entry } of readEntries(this.#core, instanceId, lasts, MAX_LAST_TEXT_UNITS))
      if (entry.direction !== 'command') lines.set(id, entry)
    return shown.map(({ chat, last, received }) => {
      const unread = named.get(chat)!.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0)
      return {
        ...chat,
        unreadCount: Math.min(unread, MAX_UNREAD),
        lastReceivedId: received === NOTHING ? null : received,
        lastLine: lines.get(last) ?? null,
      }
    })
  }

  /** All numbers of the people among the chats, by LID. */
  async #findPeople(instanceId: InstanceId, chats: readonly Chat[]): Promise<Map<string, string[]>> {
    const lids = chats.flatMap(({ lid }) => lid ?? [])
    const rows = lids.length === 0 ? [] : await findNumbers(this.#core, instanceId, lids)
    const people = Map.groupBy(rows, ({ lid }) => lid!)
    return new Map(Array.from(people, ([lid, found]) => [lid, found.map(({ number }) => number)]))
  }
}

/** In UTF-8, a unit takes three bytes at most. */
function shownBytes(size: { bytes: number; textBytes: number } = { bytes: 0, textBytes: 0 }): number {
  return size.bytes - size.textBytes + Math.min(size.textBytes, 3 * MAX_LAST_TEXT_UNITS)
}

/** The names that messages of a chat have in their rows. */
function namesOf({ chat, lid }: Chat): string[] {
  return lid === null || lid === chat ? [chat] : [chat, lid]
}

function latest(ids: readonly (string | null)[]): string {
  return ids.reduce<string>((last, id) => (id !== null && id > last ? id : last), NOTHING)
}

/** The message that a read mark is for. */
function markedBy(extras: string | null): MessageId | null {
  const { command }: MessageExtras = JSON.parse(extras ?? '{}')
  return command?.target.messageId ?? null
}

/**
 * For each name of a chat: the last sent message, the last sent message that did not fail, the last read mark that did
 * not fail, the last received message, and the last message that the owner wrote on another device.
 */
function endsStatement({ statements }: Core) {
  const failed = sql.lit<MessageState>('failed')
  const own = (selected: string, condition: ReturnType<typeof sql>) => sql<string | null>`(
    select ${sql.ref(`m.${selected}`)} from messages as m where m.instance_id = input.instance_id
      and m.address = input.address and m.address is not null and ${condition} order by m.id desc limit 1)`
  const delivered = (condition: ReturnType<typeof sql>) => sql<string | null>`(
    select i.id from incoming_messages as i where i.instance_id = input.instance_id
      and i.chat = input.name and ${condition} order by i.id desc limit 1)`
  return statements.rows({ instance_id: 'text', name: 'text', address: 'text' }, db =>
    db.selectFrom('input').select([
      'input.name',
      own('id', sql`m.id >= 'msg_'`).as('sent'),
      own('id', sql`m.id >= 'msg_' and m.state <> ${failed}`).as('answered'),
      // The extras of a read mark contain only its command.
      own('extras', sql`m.id < 'msg_' and m.state <> ${failed} and m.extras like '{"command":{"kind":"read"%'`).as(
        'mark',
      ),
      delivered(sql`i.written is null`).as('received'),
      delivered(sql`i.written = 1`).as('written'),
    ]),
  )
}

function countStatement({ statements }: Core) {
  return statements.rows({ instance_id: 'text', name: 'text', after: 'text' }, db =>
    db.selectFrom('input').select([
      'input.name',
      sql<number>`(select count(*) from (
        select 1 as one from incoming_messages as i where i.instance_id = input.instance_id and i.chat = input.name
          and i.id > input.after and i.type <> 'reaction' limit ${sql.lit(MAX_UNREAD)}) as unread)`.as('count'),
    ]),
  )
}
