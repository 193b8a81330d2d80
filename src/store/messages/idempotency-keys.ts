import { sql } from 'kysely'
import type { Statements } from '../engine/statement.ts'

/** How long an idempotency key is valid (contract §3). */
export const KEY_MS = 24 * 60 * 60_000

/**
 * The key of a scheduled message, or of a command on one, is valid until `KEY_MS` after the message or command was sent
 * or has failed. That may be later than its time, because of the pace of the instance or a lost connection.
 */
export function outlivesExpiry({ now }: Pick<Statements, 'now'>) {
  return sql<boolean>`exists (select 1 from messages where messages.instance_id = idempotency_keys.instance_id
    and messages.id = idempotency_keys.message_id and messages.not_before is not null
    and coalesce(messages.sent_at, messages.failed_at, ${now}) > ${now} - ${sql.lit(KEY_MS)})`
}
