import type { DatabaseKind } from '../../database-kind.ts'
import type { Flavour } from '../flavour.ts'

/** Migration 0009 replaced the index on PostgreSQL only. */
const INDEXES: Record<DatabaseKind, string> = {
  sqlite: 'messages_whatsapp_id',
  postgres: 'messages_by_whatsapp_id',
}

/**
 * A message is found by its WhatsApp ID only after its preparation, so the index leaves out earlier messages. WhatsApp IDs are
 * random, so each accepted message changed another page of the index: a third of all pages that accepting wrote.
 */
export function preparedMessages({ kind }: Flavour): string[] {
  return [
    // The strongest lock first: upgrading to it later can deadlock with running nodes.
    `drop index ${INDEXES[kind]}`,
    'create unique index messages_prepared on messages (whatsapp_id, instance_id) where address is not null',
  ]
}
