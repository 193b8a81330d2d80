import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Core } from '../engine/core.ts'
import { nameAfterId, toPage } from '../engine/cursor.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import { searchPatterns } from '../engine/search-patterns.ts'
import type { DirectoryContact } from './directory.ts'

/** Sorts after every name, so that contacts without a name come last. */
const NO_NAME = '\u{10ffff}'

/** Reads all contacts of the instance: its cost grows with their number, and a search for part of a name has no index. */
export async function listContacts(
  { reader, statements }: Core,
  instanceId: InstanceId,
  page: PageRequest,
  search?: string,
): Promise<Page<DirectoryContact>> {
  const after = nameAfterId(page)
  const sortName = sql<string>`coalesce(search_saved, search_name, ${sql.lit(NO_NAME)})`
  let query = statements.db
    .selectFrom('contacts')
    .select(['number', 'last_at', 'lid', 'username', 'name', 'saved_name'])
    .select(sortName.as('sort_name'))
    .where('instance_id', '=', instanceId)
    .where(IS_PERSON)
    .orderBy('sort_name')
    .orderBy('number')
    .limit(page.limit + 1)
  if (after !== null) query = query.where(sql<boolean>`(${sortName}, number) > (${after.name}, ${after.id})`)
  if (search !== undefined) {
    const { encoded, number } = searchPatterns(search)
    query = query.where(
      sql<boolean>`(search_saved like ${encoded} escape '\\' or search_name like ${encoded} escape '\\'
        or lower(username) like ${encoded} escape '\\' or number like ${number} escape '\\')`,
    )
  }
  const rows = await reader.query(query)
  return toPage(rows, page.limit, row => `${row.number} ${row.sort_name}`, toContact)
}

/** Not a group, and not the LID of somebody whose number became known later and has a row of its own. */
const IS_PERSON = sql<boolean>`number not like '%@g.us' and (number not like '%@lid' or not exists (
  select 1 from contacts as c where c.instance_id = contacts.instance_id and c.lid = contacts.number))`

function toContact(row: {
  number: string
  last_at: number | null
  lid: string | null
  username: string | null
  name: string | null
  saved_name: string | null
}): DirectoryContact {
  const isNumber = parseRecipient(row.number)?.kind === 'number'
  return {
    chat: row.number,
    phone: isNumber ? row.number : null,
    lid: isNumber ? row.lid : row.number,
    username: parsed(row.username),
    name: parsed(row.saved_name),
    pushName: parsed(row.name),
    lastMessageAt: row.last_at,
  }
}

function parsed(text: string | null): string | null {
  return text === null ? null : JSON.parse(text)
}
