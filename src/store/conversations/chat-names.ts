import type { InstanceId } from '../../domain/ids.ts'
import { otherSpelling, parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Core } from '../engine/core.ts'
import { addressOf, type Names, namesOf } from './chat-lines.ts'

/**
 * All names of a chat (its addresses and their spellings): the given one, those of the contacts, and those that a look-up shows. Somebody
 * who changed numbers has several, all with the same LID.
 */
export async function findNames(core: Core, instanceId: InstanceId, chat: string): Promise<Names> {
  const kind = parseRecipient(chat)?.kind
  if (kind !== 'number' && kind !== 'lid') return namesOf(chat)
  const spellings = kind === 'number' ? await findSpellings(core, instanceId, [chat]) : []
  const lids = kind === 'lid' ? [chat] : await findLids(core, instanceId, spellings)
  if (lids.length === 0) return namesOf(chat, ...spellings)
  const numbers = (await findNumbers(core, instanceId, lids)).map(({ number }) => number)
  return namesOf(chat, ...spellings, ...lids, ...(await findSpellings(core, instanceId, numbers)))
}

/** The two spellings may belong to different people, unless a look-up of one spelling returned the other. */
async function findSpellings(
  { reader, statements }: Core,
  instanceId: InstanceId,
  numbers: readonly string[],
): Promise<string[]> {
  const pairs = numbers.flatMap(number => {
    const other = otherSpelling(number)
    return other === null ? [] : [[number, other]]
  })
  if (pairs.length === 0) return [...numbers]
  const spellings = pairs.flat()
  const rows = await reader.query(
    statements.db
      .selectFrom('numbers')
      .select(['number', 'address'])
      .where('instance_id', '=', instanceId)
      .where('number', 'in', spellings)
      .where('address', 'in', spellings.map(addressOf)),
  )
  const changed = new Set(rows.filter(row => row.address !== addressOf(row.number)).map(row => row.number))
  return [...numbers, ...pairs.filter(pair => pair.some(spelling => changed.has(spelling))).flat()]
}

async function findLids(
  { reader, statements }: Core,
  instanceId: InstanceId,
  numbers: readonly string[],
): Promise<string[]> {
  const rows = await reader.query(
    statements.db
      .selectFrom('contacts')
      .select('lid')
      .where('instance_id', '=', instanceId)
      // A condition on `lid` would make SQLite read the whole index of the LIDs.
      .where('number', 'in', numbers),
  )
  return rows.flatMap(({ lid }) => lid ?? [])
}

/** The numbers of the people with these LIDs. */
export function findNumbers(
  { reader, statements }: Core,
  instanceId: InstanceId,
  lids: readonly string[],
): Promise<{ number: string; lid: string | null }[]> {
  return reader.query(
    statements.db
      .selectFrom('contacts')
      .select(['number', 'lid'])
      .where('instance_id', '=', instanceId)
      .where('lid', 'in', lids)
      // A person known only by LID has a row under the LID.
      .where('number', 'not in', lids),
  )
}
