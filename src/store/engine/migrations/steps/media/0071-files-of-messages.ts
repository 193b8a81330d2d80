import type { Flavour } from '../../flavour.ts'

/**
 * Nodes of the previous version would send the caption as a text, so no message with a file is accepted while such a
 * node runs (`nodes.media`). `file` is a JSON object (`MessageFile` without its ID). The index finds media that must
 * not be erased yet.
 */
export function filesOfMessages({ id, integer }: Flavour): string[] {
  return [
    `alter table messages add column media_id ${id}`,
    'alter table messages add column file text',
    `alter table nodes add column media ${integer} not null default 0`,
    `create index messages_media on messages (instance_id, media_id) where state = 'queued' and media_id is not null`,
  ]
}
