import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'

/** A message or command that was found, before it is read. */
export interface FoundMessage {
  id: string
  table: 'messages' | 'incoming_messages'
  /** The size of the fields that can be long. */
  bytes: number
}

/** Neither database reads a value to find its length. */
const TEXT_BYTES = sql<number>`coalesce(octet_length(text), 0)`

export const BYTES = {
  messages: sql<number>`${TEXT_BYTES} + coalesce(octet_length(extras), 0) + coalesce(octet_length(file), 0)`,
  incoming_messages: sql<number>`${TEXT_BYTES} + coalesce(octet_length(details), 0) + coalesce(octet_length(file), 0)
    + coalesce(octet_length(name), 0) + coalesce(octet_length(username), 0) + octet_length(whatsapp_id)`,
}

/** The sizes of messages and commands whose table is unknown, by ID. */
export async function measure(
  { reader, statements }: Core,
  instanceId: InstanceId,
  ids: readonly string[],
): Promise<ReadonlyMap<string, FoundMessage & { textBytes: number }>> {
  if (ids.length === 0) return new Map()
  const read = async (table: FoundMessage['table']) => {
    const query = statements.db
      .selectFrom(table)
      .select(['id', BYTES[table].as('bytes'), TEXT_BYTES.as('textBytes')])
      .where('instance_id', '=', instanceId)
      .where('id', 'in', ids)
    return (await reader.query(query)).map(row => [row.id, { ...row, table }] as const)
  }
  const [sent, delivered] = await Promise.all([read('messages'), read('incoming_messages')])
  return new Map([...sent, ...delivered])
}
