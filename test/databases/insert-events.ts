import { MAX_EVENT_TEXT_UNITS } from '../../src/domain/events/event.ts'
import { firstEventId, firstMessageId } from '../../src/domain/ids.ts'
import type { StoreKind } from './database.ts'

interface LargeEvents {
  count: number
  /** The number of characters of each text. */
  length: number
  /** `new`: each event has a row of its message. `old`: as stored before such rows existed. */
  form: 'old' | 'new'
}

/** The statements that insert events of incoming messages. */
export function insertEvents(store: StoreKind, instanceId: string, { count, length, form }: LargeEvents): string[] {
  const isSqlite = store === 'sqlite'
  const numbers = isSqlite
    ? `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count}) select i from n) as n`
    : `generate_series(1, ${count}) as n(i)`
  const textOf = (length: number) =>
    isSqlite ? `replace(hex(zeroblob(${length / 2})), '0', 'x')` : `repeat('x', ${length})`
  const shown = textOf(form === 'new' ? Math.min(length, MAX_EVENT_TEXT_UNITS) : length)
  const now = Date.now()
  // New events follow the old ones.
  const seq = form === 'new' ? `${count} + i` : 'i'
  const idOf = (first: string) => `'${first}' || (100000000 + ${seq})`
  const digest = isSqlite ? 'randomblob(32)' : "decode(md5(i::text || 'x'), 'hex')"
  const envelope = JSON.stringify({ event: 'message.received', instanceId, timestamp: '2026-01-01T00:00:00.000Z' })
  const body = `'${envelope.slice(0, -1)},"data":{"id":"A","from":"5511987654321","type":"text","text":"' || ${shown} || '"}}'`
  const messageId = form === 'new' ? idOf(firstMessageId(now)) : 'null'
  const events = `insert into events (instance_id, id, kind, timestamp, created_at, message_id, incoming_digest, seq, body)
    select '${instanceId}', ${idOf(firstEventId(now))}, 'message.received', i, i, ${messageId}, ${digest}, ${seq}, ${body} from ${numbers}`
  const messages = `insert into incoming_messages (instance_id, id, created_at, sent_at, type, chat, sender, whatsapp_id, text)
    select '${instanceId}', ${idOf(firstMessageId(now))}, i, i, 'text', '5511987654321', '5511987654321', '"A"', '"' || ${textOf(length)} || '"' from ${numbers}`
  return form === 'new' ? [events, messages] : [events]
}
