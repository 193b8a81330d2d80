import type { Flavour } from '../../flavour.ts'

/**
 * When a message was edited and deleted, and whether the owner wrote it on another device (`written`). Nodes of the
 * previous version list such a message as if the instance's own number had sent it to the instance.
 */
export function changesOfMessages({ integer }: Flavour): string[] {
  return [
    ...['messages', 'incoming_messages'].flatMap(table => [
      `alter table ${table} add column edited_at ${integer}`,
      `alter table ${table} add column deleted_at ${integer}`,
    ]),
    `alter table incoming_messages add column written ${integer}`,
    'create index incoming_messages_written on incoming_messages (instance_id, id) where written = 1',
    'create index incoming_messages_written_chat on incoming_messages (instance_id, chat, id) where written = 1',
  ]
}
