/**
 * Finds the messages of one chat, latest first. Accepting a message adds it to none of these indexes: it is added when it is
 * prepared or fails. Queued messages of a chat that are not prepared are found among all queued messages.
 */
export function chatOrder(): string[] {
  return [
    'create index messages_chat on messages (instance_id, address, id) where address is not null',
    `create index messages_unwritten on messages (instance_id, recipient, id)
      where address is null and failed_at is not null`,
    'create index incoming_messages_chat on incoming_messages (instance_id, chat, id)',
  ]
}
