import type { Flavour } from '../../flavour.ts'

/**
 * Files that are fetched from a URL. As for received files, the row in `media` is created before the bytes are fetched,
 * and belongs to one message (`media.received` is 2). A node of the previous version would fail the message, so no such
 * message is accepted while one runs (`nodes.urls`).
 */
export function filesFromUrls({ id, integer, rows }: Flavour): string[] {
  return [
    `alter table nodes add column urls ${integer} not null default 0`,
    `create table media_fetches (
      instance_id ${id} not null references instances (id) on delete cascade,
      media_id ${id} not null,
      url text not null,
      host text not null,
      attempts ${integer} not null,
      due_at ${integer} not null,
      primary key (instance_id, media_id)
    ) ${rows}`,
    'create index media_fetches_due on media_fetches (due_at)',
  ]
}
