import { setImmediate } from 'node:timers/promises'
import { type Selectable, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { GroupRole } from '../../domain/recipients/group.ts'
import type { Names } from '../conversations/chat-lines.ts'
import { toDetails } from '../directory/group-rows.ts'
import type { Core } from '../engine/core.ts'
import type { GroupsTable } from '../engine/schema/directory.ts'

/** Groups whose members one query searches. A large group has 100 KB. */
const STEP = 20

/** The lists of people in the body of `group.changed`. Each is absent if it is empty. */
const LISTS = ['added', 'removed', 'promoted', 'demoted'] as const

interface Person {
  phone: string | null
  lid: string | null
}

type Lists = Partial<Record<(typeof LISTS)[number], Person[]>>

interface GroupRow extends Pick<Selectable<GroupsTable>, 'id' | 'member' | 'subject' | 'as_of'> {
  /** Null if they do not contain the person. */
  details: string | null
}

/** A group whose list of members contains the person. */
export interface Membership {
  group: string
  subject: string
  role: GroupRole
  as_of: number
}

/** Finds the groups whose list of members names a person. */
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
    const found: Membership[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const groups: GroupRow[] = await this.#core.reader.query(
        db
          .selectFrom('groups')
          .select(['id', 'member', 'subject', 'as_of'])
          .select(sql<string | null>`case when ${isListed} then details end`.as('details'))
          .where('instance_id', '=', instanceId)
          .where('id', '>', after)
          .orderBy('id')
          .limit(STEP),
      )
      found.push(...groups.flatMap(row => membershipIn(row, names)))
      after = groups[STEP - 1]?.id
      // On SQLite, reads block the event loop, so other calls run in between.
      await setImmediate()
    }
    return found
  }
}

function membershipIn({ details, ...row }: GroupRow, names: Names): Membership[] {
  const { id: group, subject, members = [] } = (details !== null && toDetails({ ...row, details })) || {}
  const found = members.find(member => isNamed(member, names))
  if (group === undefined || subject === undefined || found === undefined) return []
  return [{ group, subject, role: found.role, as_of: row.as_of }]
}

/** @returns the body of a `group.changed` without the person, and with nobody else; null if the person is absent */
export function splitGroupChange(body: string, names: Names): { others: string; person: string } | null {
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
