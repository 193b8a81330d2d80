import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { otherSpelling, parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Core } from '../engine/core.ts'
import { addressOf, type Names, namesOf } from './chat-lines.ts'

/** All names of a chat: the given one, those that the contacts show, and the other spelling if a look-up shows it. */
export async function findNames(core: Core, instanceId: InstanceId, chat: string): Promise<Names> {
  const kind = parseRecipient(chat)?.kind
  if (kind === 'number') {
    const spellings = await findSpellings(core, instanceId, chat)
    return namesOf(chat, ...spellings, ...(await findLids(core, instanceId, spellings)))
  }
  if (kind !== 'lid') return namesOf(chat)
  const number = await findNumber(core, instanceId, chat)
  return namesOf(chat, ...(number === null ? [] : await findSpellings(core, instanceId, number)))
}

/** The two spellings may belong to different people, unless a look-up of one spelling returned the other. */
async function findSpellings({ reader, statements }: Core, instanceId: InstanceId, number: string): Promise<string[]> {
  const other = otherSpelling(number)
  if (other === null) return [number]
  const spellings = [number, other]
  const rows = await reader.query(
    statements.db
      .selectFrom('numbers')
      .select(['number', 'address'])
      .where('instance_id', '=', instanceId)
      .where('number', 'in', spellings)
      .where('address', 'in', spellings.map(addressOf)),
  )
  return rows.some(row => row.address !== addressOf(row.number)) ? spellings : [number]
}

async function findLids(
  { reader, statements }: Core,
  instanceId: InstanceId,
  numbers: readonly string[],
): Promise<(string | null)[]> {
  const rows = await reader.query(
    statements.db
      .selectFrom('contacts')
      .select('lid')
      .where('instance_id', '=', instanceId)
      .where('number', 'in', numbers),
  )
  return rows.map(({ lid }) => lid)
}

async function findNumber({ reader, statements }: Core, instanceId: InstanceId, lid: string): Promise<string | null> {
  const [row] = await reader.query(
    statements.db
      .selectFrom('contacts')
      .select('number')
      .where('instance_id', '=', instanceId)
      // SQLite uses the index of LIDs only in a query that reads no other columns.
      .where('number', 'in', eb =>
        eb
          .selectFrom('contacts as k')
          .select('k.number')
          .where('k.instance_id', '=', instanceId)
          .where('k.lid', '=', lid),
      )
      // A person known only by LID has a row under the LID.
      .where('number', '<>', lid)
      // Somebody who changed numbers has several.
      .orderBy(sql`coalesce(last_at, 0)`, 'desc')
      .limit(1),
  )
  return row?.number ?? null
}
