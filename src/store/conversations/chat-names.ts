import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Core } from '../engine/core.ts'
import { type Names, namesOf } from './chat-lines.ts'

/** All names of the chat that has this name. The other names of a person are known from the messages received. */
export async function findNames({ reader, statements }: Core, instanceId: InstanceId, chat: string): Promise<Names> {
  const kind = parseRecipient(chat)?.kind
  if (kind !== 'number' && kind !== 'lid') return namesOf(chat)
  const [row] = await reader.query(
    statements.db
      .selectFrom('contacts')
      .select(['number', 'lid'])
      .where('instance_id', '=', instanceId)
      .where(kind === 'number' ? 'number' : 'lid', '=', chat)
      // A person known only by LID has a row under the LID.
      .where(kind === 'number' ? sql<boolean>`true` : sql<boolean>`number <> lid`)
      .limit(1),
  )
  return namesOf(chat, row?.number ?? null, row?.lid ?? null)
}
