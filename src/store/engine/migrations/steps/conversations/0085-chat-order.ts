/**
 * Find the messages of one chat, latest first. A message that was accepted is added to no further index: only one that is
 * prepared or has failed. The unprepared queued ones of a chat are found among all queued messages.
 */
export function chatOrder(): string[] {
  return [
    'create index messages_chat on messages (instance_id, address, id) where address is not null',
    `create index messages_unwritten on messages (instance_id, recipient, id)
      where address is null and failed_at is not null`,
    'create index incoming_messages_chat on incoming_messages (instance_id, chat, id)',
  ]
}
