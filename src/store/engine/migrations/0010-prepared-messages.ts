import type { Flavour } from './flavour.ts'

/**
 * WhatsApp knows a message's id from its preparation on, so that nobody looks for it before. Random as they are, the ids of
 * messages accepted together change a page of the index each: a third of what accepting them wrote.
 */
export function preparedMessages({ kind }: Flavour): string[] {
  return [
    // First what takes the strongest lock: to ask for it later, between nodes at work, would be a deadlock.
    kind === 'postgres' ? 'drop index messages_by_whatsapp_id' : 'drop index messages_whatsapp_id',
    'create unique index messages_prepared on messages (whatsapp_id, instance_id) where address is not null',
  ]
}
