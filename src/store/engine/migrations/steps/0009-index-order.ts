import type { DatabaseKind } from '../../database-kind.ts'
import type { Flavour } from '../flavour.ts'

/**
 * Before PostgreSQL has analysed a table, it considers two indexes that begin with the same column equally good and uses the
 * newer one. To find a message by its ID it therefore read all messages of the instance through the index on WhatsApp IDs.
 * The new index begins with another column.
 */
export function indexOrder({ kind }: Flavour): string[] {
  return STATEMENTS[kind]
}

const STATEMENTS: Record<DatabaseKind, string[]> = {
  sqlite: [],
  postgres: [
    // The strongest lock first: upgrading to it later can deadlock with running nodes.
    'drop index messages_whatsapp_id',
    'create unique index messages_by_whatsapp_id on messages (whatsapp_id, instance_id)',
  ],
}
