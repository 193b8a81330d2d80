import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { GroupRole } from '../../domain/recipients/group.ts'
import type { Names } from '../conversations/chat-lines.ts'
import { toDetails } from '../directory/group-rows.ts'
import type { Core } from '../engine/core.ts'

/** Events that one query reads. */
const WINDOW = 1_000
/** The lists of people in the body of `group.changed`. Each is absent if it is empty. */
const LISTS = ['added', 'removed', 'promoted', 'demoted'] as const

interface Person {
  phone: string | null
  lid: string | null
}

type Lists = Partial<Record<(typeof LISTS)[number], Person[]>>

/** An event that names the person. */
export interface GroupEvent {
  id: EventId
  createdAt: number
  body: string
}

/** A group whose list of members contains the person. */
export interface Membership {
  group: string
  subject: string
  role: GroupRole
  as_of: number
}

/** Finds where a person is named as a member of groups: in lists of members, and in events about their changes. */
export class GroupMemberships {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  async findGroups(instanceId: InstanceId, names: Names): Promise<Membership[]> {
    const { db } = this.#core.statements
    // Addresses have no character that LIKE treats specially.
    const isListed = sql.join(
      names.chats.map(name => sql`details like ${`%"${name}"%`}`),
      sql` or `,
    )
    const rows = await this.#core.reader.query(
      db
        .selectFrom('groups')
        .select(['id', 'member', 'subject', 'details', 'as_of'])
        .where('instance_id', '=', instanceId)
        .where('member', '=', 1)
        .where(sql<boolean>`(${isListed})`)
        .orderBy('id'),
    )
    return rows.flatMap(row => {
      const { id: group, subject, members = [] } = toDetails(row) ?? {}
      const found = members.find(member => isNamed(member, names))
      if (group === undefined || subject === undefined || found === undefined) return []
      return [{ group, subject, role: found.role, as_of: row.as_of }]
    })
  }

  /** Reads all events of the instance, the newest first, because there is no index for events about groups. */
  async *walk(instanceId: InstanceId, names: Names): AsyncGenerator<readonly GroupEvent[], void> {
    const { db } = this.#core.statements
    for (let below: number | null = Number.MAX_SAFE_INTEGER; below !== null; ) {
      const rows: { id: EventId; seq: number | null; created_at: number; body: string | null }[] =
        await this.#core.reader.query(
          db
            .selectFrom('events')
            .select(['id', 'seq', 'created_at'])
            .select(sql<string | null>`case when kind = 'group.changed' then body end`.as('body'))
            .where('instance_id', '=', instanceId)
            .where('seq', '<', below)
            .orderBy('seq', 'desc')
            .limit(WINDOW),
        )
      const found = rows.flatMap(({ id, created_at: createdAt, body }) =>
        body !== null && split(body, names) !== null ? [{ id, createdAt, body }] : [],
      )
      if (found.length > 0) yield found
      below = rows.length < WINDOW ? null : rows.at(-1)!.seq
      // On SQLite, reads block the event loop, so other calls run in between.
      await setImmediate()
    }
  }
}

/** @returns the body of a `group.changed` without the person, and with nobody else; null if the person is absent */
export function split(body: string, names: Names): { others: string; person: string } | null {
  const { data, ...envelope } = JSON.parse(body) as { data: Lists }
  const all = LISTS.flatMap(name => data[name] ?? [])
  if (!all.some(person => isNamed(person, names))) return null
  const only = (keep: (person: Person) => boolean) => JSON.stringify({ ...envelope, data: filtered(data, keep) })
  return { others: only(person => !isNamed(person, names)), person: only(person => isNamed(person, names)) }
}

function filtered(data: Lists, keep: (person: Person) => boolean): Lists {
  const result = { ...data }
  for (const name of LISTS) {
    const people = data[name]?.filter(keep) ?? []
    if (people.length > 0) result[name] = people
    else delete result[name]
  }
  return result
}

function isNamed({ phone, lid }: Person, { chats }: Names): boolean {
  return (phone !== null && chats.includes(phone)) || (lid !== null && chats.includes(lid))
}
