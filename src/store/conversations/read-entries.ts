import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { countFitting } from '../engine/cursor.ts'
import { selectIncoming, toIncoming } from '../messages/incoming.ts'
import { selectSent, toMessage } from '../messages/sent-rows.ts'
import type { FoundMessage } from '../messages/sizes.ts'
import { lineOf, toCommand } from './chat-lines.ts'
import type { ChatEntry } from './conversations.ts'

/** The most UTF-16 units that JSON needs for one unit of text: `\u0007`. */
const JSON_UNITS = 6

export interface ReadEntry {
  id: string
  entry: ChatEntry
  /** Its file, or the image of its link preview. */
  mediaId: string | null
}

/**
 * Reads messages and commands in the given order, as many at a time as fit on a page. Erased ones are left out.
 * @param maxUnits cuts each text to this many UTF-16 units. Default: the whole texts
 */
export async function* readEntries(
  core: Core,
  instanceId: InstanceId,
  found: readonly FoundMessage[],
  maxUnits?: number,
): AsyncGenerator<ReadEntry, void> {
  for (let rest = found; rest.length > 0; ) {
    const part = rest.slice(0, countFitting(rest, rest.length))
    const entries = await readPart(core, instanceId, part, maxUnits)
    for (const { id } of part) {
      const entry = entries.get(id)
      if (entry !== undefined) yield entry
    }
    rest = rest.slice(part.length)
    // On SQLite a read blocks the event loop, so other calls run in between.
    if (rest.length > 0) await setImmediate()
  }
}

async function readPart(
  { reader, statements }: Core,
  instanceId: InstanceId,
  found: readonly FoundMessage[],
  maxUnits: number | undefined,
): Promise<ReadonlyMap<string, ReadEntry>> {
  const idsIn = (table: FoundMessage['table']) => found.filter(row => row.table === table).map(({ id }) => id)
  const beginning = (column: string, units: number) =>
    maxUnits === undefined ? undefined : sql<string>`substr(${sql.ref(column)}, 1, ${sql.lit(units)})`
  const own = idsIn('messages')
  const delivered = idsIn('incoming_messages')
  const text = beginning('text', maxUnits ?? 0)
  const json = beginning('incoming_messages.text', JSON_UNITS * (maxUnits ?? 0) + 1)
  const [ownRows, deliveredRows] = await Promise.all([
    own.length === 0 ? [] : reader.query(selectSent(statements, instanceId, own, text)),
    delivered.length === 0
      ? []
      : reader.query(
          selectIncoming(statements, json)
            .where('incoming_messages.instance_id', '=', instanceId)
            .where('incoming_messages.id', 'in', delivered),
        ),
  ])
  const entries = new Map<string, ReadEntry>()
  for (const row of ownRows) {
    const { id, media_id: mediaId } = row
    const entry: ChatEntry = id.startsWith('cmd_')
      ? { direction: 'command', command: toCommand(row) }
      : { direction: 'out', message: toMessage({ ...row, text: cut(row.text, maxUnits) }) }
    entries.set(id, { id, entry, mediaId })
  }
  for (const row of deliveredRows) {
    const { id, media_id: mediaId } = row
    entries.set(id, { id, entry: lineOf(toIncoming({ ...row, text: cutJson(row.text, maxUnits) })), mediaId })
  }
  return entries
}

/** Never cuts inside a surrogate pair. */
function cut(text: string, maxUnits: number | undefined): string {
  if (maxUnits === undefined || text.length <= maxUnits) return text
  return text.slice(0, (text.codePointAt(maxUnits - 1) ?? 0) > 0xffff ? maxUnits - 1 : maxUnits)
}

/** @param json a JSON string or its beginning, which may end inside an escape sequence */
function cutJson(json: string | null, maxUnits: number | undefined): string | null {
  if (json === null || maxUnits === undefined) return json
  const [whole] = /^"(?:[^"\\]|\\u[0-9a-f]{4}|\\[^u])*/.exec(json) ?? ['"']
  return JSON.stringify(cut(JSON.parse(`${whole}"`), maxUnits))
}
