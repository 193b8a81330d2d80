/** Finds the commands on a scheduled message without reading the other messages of the same moment, which may be thousands. */
export function scheduledCommands(): string[] {
  return [
    'drop index messages_scheduled',
    `create index messages_scheduled on messages (instance_id, not_before, id)
      where state = 'queued' and not_before is not null and seq < 0`,
  ]
}
