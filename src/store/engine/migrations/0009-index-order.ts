import type { Flavour } from './flavour.ts'

/**
 * PostgreSQL, before it analyzes a table for the first time, takes two indexes that begin with what is looked for to be as
 * good as one another, and the younger one: of two that begin with the instance, it read all of an instance's messages by
 * the one on WhatsApp ids to find a single message by its own.
 */
export function indexOrder({ kind }: Flavour): string[] {
  if (kind === 'sqlite') return []
  return [
    // First what takes the strongest lock: to ask for it later, between nodes at work, would be a deadlock.
    'drop index messages_whatsapp_id',
    'create unique index messages_by_whatsapp_id on messages (whatsapp_id, instance_id)',
  ]
}
