import type { Flavour } from '../../flavour.ts'

/** `file` is a JSON object (`MessageFile` without its ID). The index finds what must not be erased yet. */
export function filesOfMessages({ id }: Flavour): string[] {
  return [
    `alter table messages add column media_id ${id}`,
    'alter table messages add column file text',
    `create index messages_media on messages (instance_id, media_id) where state = 'queued' and media_id is not null`,
  ]
}
