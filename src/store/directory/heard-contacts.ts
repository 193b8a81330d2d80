import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { HeardContact } from '../../domain/recipients/contact.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import { searchedAs } from '../engine/search-patterns.ts'
import type { RowOf, Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'

/** Contacts in one commit. */
const STEP = 200
const MAX_NAME_UNITS = 500

const COLUMNS = {
  instance_id: 'text',
  number: 'text',
  last_at: 'integer?',
  lid: 'text?',
  username: 'text?',
  name: 'text?',
  search_name: 'text?',
  saved_name: 'text?',
  search_saved: 'text?',
  stranger: 'integer',
} as const

type Row = RowOf<typeof COLUMNS>

/** Records what the phone reports about contacts. A report does not turn a stranger into a contact. */
export class HeardContacts {
  readonly #core: Core
  readonly #statements
  readonly #record

  constructor(core: Core) {
    this.#core = core
    this.#statements = prepare(core.statements)
    this.#record = fencedOneByOne(
      'directory.contacts',
      (tx, { lease, contacts }: { lease: Lease; contacts: readonly HeardContact[] }) =>
        this.#recordAll(tx, lease.instanceId, contacts),
    )
  }

  async record(lease: Lease, contacts: readonly HeardContact[]): Promise<void> {
    for (let at = 0; at < contacts.length; at += STEP)
      await this.#core.write(this.#record, { lease, contacts: contacts.slice(at, at + STEP) })
  }

  async #recordAll(tx: Transaction, instance_id: InstanceId, contacts: readonly HeardContact[]): Promise<void> {
    const lids = contacts.flatMap(({ lid }) => (lid === null ? [] : [{ instance_id, lid }]))
    const [numbered, unnumbered] = await Promise.all([
      tx.each(this.#statements.byLid, lids),
      tx.each(
        this.#statements.byNumber,
        lids.map(({ lid }) => ({ instance_id, number: lid })),
      ),
    ])
    const numberOf = new Map(numbered.map(({ lid, number }) => [lid, number]))
    const hidden = new Map(unnumbered.map(row => [row.number, row]))
    const rows = new Map<string, Row>()
    for (const contact of contacts) {
      if (parseRecipient(contact.chat) === null) continue
      const row = toRow(instance_id, contact, numberOf.get(contact.lid ?? ''))
      // The row of the same person from before the number was known.
      const former = row.number === contact.lid ? undefined : hidden.get(contact.lid ?? '')
      const known = [rows.get(row.number), former && { ...former, instance_id }].filter(other => other !== undefined)
      rows.set(row.number, known.reduce(merge, row))
    }
    if (rows.size > 0) tx.post(this.#statements.put, [...rows.values()])
  }
}

function toRow(instance_id: InstanceId, contact: HeardContact, knownNumber: string | undefined): Row {
  const { chat, lid, lastMessageAt } = contact
  const [name, saved] = [cut(contact.pushName), cut(contact.name)]
  return {
    instance_id,
    number: chat === lid ? (knownNumber ?? chat) : chat,
    last_at: lastMessageAt,
    lid: chat === lid && knownNumber === undefined ? null : lid,
    username: contact.username === null ? null : JSON.stringify(cut(contact.username)),
    name: name === null ? null : JSON.stringify(name),
    search_name: name === null ? null : searchedAs(name),
    saved_name: saved === null ? null : JSON.stringify(saved),
    search_saved: saved === null ? null : searchedAs(saved),
    stranger: 1,
  }
}

/** `row`, with its empty columns filled from `other`. The person is a stranger only if both rows say so. */
function merge(row: Row, other: Row): Row {
  const merged = { ...row, stranger: row.stranger * other.stranger }
  for (const column of ['last_at', 'lid', 'username', 'name', 'search_name', 'saved_name', 'search_saved'] as const)
    Object.assign(merged, { [column]: row[column] ?? other[column] })
  return merged
}

function cut(text: string | null): string | null {
  return text === null ? null : text.slice(0, MAX_NAME_UNITS)
}

function prepare(statements: Statements) {
  const known = (column: keyof typeof COLUMNS) =>
    sql<string | null>`coalesce(excluded.${sql.ref(column)}, contacts.${sql.ref(column)})`
  const { instance_id: _, ...others } = COLUMNS
  const all = Object.keys(others) as (keyof typeof others)[]
  return {
    byLid: statements.find('contacts', { instance_id: 'text', lid: 'text' }, ['number', 'lid'], {
      where: sql`contacts.lid is not null`,
    }),
    byNumber: statements.find('contacts', { instance_id: 'text', number: 'text' }, all),
    put: statements.insert('contacts', COLUMNS, {
      finish: query =>
        query.onConflict(oc =>
          oc.columns(['instance_id', 'number']).doUpdateSet({
            last_at: sql`case when excluded.last_at > coalesce(contacts.last_at, 0) then excluded.last_at
              else contacts.last_at end`,
            lid: known('lid'),
            username: known('username'),
            name: known('name'),
            search_name: known('search_name'),
            saved_name: known('saved_name'),
            search_saved: known('search_saved'),
            stranger: sql`excluded.stranger * contacts.stranger`,
          }),
        ),
    }),
  }
}
