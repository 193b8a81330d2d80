import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Transaction } from '../engine/backend.ts'
import { searchedAs } from '../engine/search-patterns.ts'
import type { RowOf, Statements } from '../engine/statement.ts'

/** A busy chat is written at most once in this time, unless its names change. */
const ACCURACY_MS = 60_000

const CONTACT = {
  instance_id: 'text',
  number: 'text',
  last_at: 'integer?',
  lid: 'text?',
  username: 'text?',
  name: 'text?',
  search_name: 'text?',
  stranger: 'integer',
} as const
type Row = RowOf<typeof CONTACT>

/** A person or group that a message came from or went to. */
export interface Talk {
  instanceId: InstanceId
  /** A number, a LID or a group. Other addresses are ignored. */
  with: string
  /** The time of the message; null if another `Talk` of the same message names the chat. */
  at: number | null
  lid?: string | null
  username?: string | null
  name?: string | null
  /** The person wrote in a group, which does not make a stranger a contact. */
  isStranger?: boolean
}

/** Records an instance's contacts and chats in the commit of their message. */
export class Contacts {
  readonly #insert
  readonly #resolve
  readonly #copyToNumber

  constructor(statements: Statements) {
    const isNew = (column: 'lid' | 'username' | 'name' | 'search_name') =>
      sql`(excluded.${sql.ref(column)} is not null and excluded.${sql.ref(column)} <> coalesce(contacts.${sql.ref(column)}, ''))`
    const known = (column: 'lid' | 'username' | 'name' | 'search_name') =>
      sql<string | null>`coalesce(excluded.${sql.ref(column)}, contacts.${sql.ref(column)})`
    this.#insert = statements.insert('contacts', CONTACT, {
      // A person known by LID until now keeps the chat, and stays a contact.
      fixed: {
        last_at: sql`coalesce(last_at, ${underLid('last_at')})`,
        stranger: sql`case when stranger = 0 then 0 else coalesce(${underLid('stranger')}, stranger) end`,
      },
      finish: query =>
        query.onConflict(oc =>
          oc
            .columns(['instance_id', 'number'])
            .doUpdateSet({
              last_at: sql`case when excluded.last_at > coalesce(contacts.last_at, 0) then excluded.last_at
                  else contacts.last_at end`,
              lid: known('lid'),
              username: known('username'),
              name: known('name'),
              search_name: known('search_name'),
              stranger: sql`excluded.stranger * contacts.stranger`,
            })
            .where(
              sql<boolean>`(excluded.last_at >= coalesce(contacts.last_at, 0) + ${sql.lit(ACCURACY_MS)}
                  or excluded.stranger < contacts.stranger
                  or ${isNew('lid')} or ${isNew('username')} or ${isNew('name')} or ${isNew('search_name')})`,
            ),
        ),
    })
    // After this update, both names of a person lead to one chat.
    this.#resolve = statements.rows({ instance_id: 'text', lid: 'text', address: 'text' }, db =>
      db
        .updateTable('numbers')
        .from('input')
        .set(eb => ({ address: eb.ref('input.address') }))
        .whereRef('numbers.instance_id', '=', 'input.instance_id')
        .whereRef('numbers.number', '=', 'input.lid')
        .whereRef('numbers.address', '<>', 'input.address'),
    )
    this.#copyToNumber = statements.rows(
      { instance_id: 'text', lid: 'text', last_at: 'integer?', stranger: 'integer' },
      db =>
        db
          .updateTable('contacts')
          .from('input')
          .set({
            last_at: sql`case when input.last_at > coalesce(contacts.last_at, 0) then input.last_at
              else contacts.last_at end`,
            stranger: sql`input.stranger * contacts.stranger`,
          })
          .whereRef('contacts.instance_id', '=', 'input.instance_id')
          .where(
            sql<boolean>`contacts.number = (select c.number from contacts as c
              where c.instance_id = input.instance_id and c.number <> input.lid
                and c.number in ${numbersOfLid('input.instance_id', 'input.lid')}
              order by coalesce(c.last_at, 0) desc limit 1)`,
          )
          .where(
            sql<boolean>`(input.last_at >= coalesce(contacts.last_at, 0) + ${sql.lit(ACCURACY_MS)}
              or input.stranger < contacts.stranger)`,
          ),
    )
  }

  note(tx: Transaction, talks: readonly Talk[]): void {
    const rows = new Map<string, Row>()
    const resolved = new Map<string, { instance_id: InstanceId; lid: string; address: string }>()
    for (const talk of talks) {
      const recipient = parseRecipient(talk.with)
      if (recipient === null) continue
      const { instanceId: instance_id, lid } = talk
      const key = `${instance_id}/${talk.with}`
      rows.set(key, toRow(talk, rows.get(key)))
      if (recipient.kind === 'number' && lid)
        resolved.set(key, { instance_id, lid, address: `${recipient.number}@s.whatsapp.net` })
    }
    if (rows.size > 0) tx.post(this.#insert, [...rows.values()])
    // If the number of a LID is known, its row is the person's chat.
    const lids: (Row & { lid: string })[] = []
    for (const row of rows.values())
      if (row.number.endsWith('@lid') && (row.last_at !== null || row.stranger === 0))
        lids.push({ ...row, lid: row.number })
    if (lids.length > 0) tx.post(this.#copyToNumber, lids)
    if (resolved.size > 0) tx.post(this.#resolve, [...resolved.values()])
  }
}

/** A subquery of its own, because SQLite does not use the index of LIDs in a query that reads other columns. */
export function numbersOfLid(instanceId: string, lid: string) {
  return sql`(select k.number from contacts as k
    where k.instance_id = ${sql.ref(instanceId)} and k.lid = ${sql.ref(lid)} and k.lid is not null)`
}

/** A column of the row that has the LID of an input row as its number. */
function underLid(column: 'last_at' | 'stranger') {
  return sql`(select c.${sql.ref(column)} from contacts as c where c.instance_id = input.instance_id and c.number = input.lid)`
}

/** @param other the row of an earlier `Talk` with the same person, whose values are kept where this one has none */
function toRow({ instanceId, with: number, at, lid, username, name, isStranger }: Talk, other: Row | undefined): Row {
  return {
    instance_id: instanceId,
    number,
    last_at: at ?? other?.last_at ?? null,
    lid: lid ?? other?.lid ?? null,
    username: username == null ? (other?.username ?? null) : JSON.stringify(username),
    name: name == null ? (other?.name ?? null) : JSON.stringify(name),
    search_name: name == null ? (other?.search_name ?? null) : searchedAs(name),
    stranger: isStranger ? (other?.stranger ?? 1) : 0,
  }
}

/** The chat of an address of WhatsApp, as the API names it. */
export function chatOf(address: string): string {
  return address.endsWith('@s.whatsapp.net') ? address.slice(0, address.indexOf('@')) : address
}
