import type { Flavour } from '../../flavour.ts'

/**
 * Files that were sent to the instance. The row in `media` is created before the bytes are fetched. Until then it has
 * neither a file nor `gone_at`, and there is a row in `media_downloads`. A received medium belongs to one message, so
 * it keeps its ID even if the instance has the same content already. `incoming_messages.file` is a JSON object
 * (`FileFacts`). A node of the previous version records messages without their files.
 */
export function receivedFiles({ id, integer, blob, rows }: Flavour): string[] {
  return [
    `alter table incoming_messages add column media_id ${id}`,
    'alter table incoming_messages add column file text',
    `alter table media add column received ${integer} not null default 0`,
    'drop index media_content',
    'create unique index media_content on media (instance_id, sha256) where sha256 is not null and received = 0',
    `create index media_failures on media (gone_reason) where received = 1 and gone_at is not null`,
    `create table media_downloads (
      instance_id ${id} not null references instances (id) on delete cascade,
      media_id ${id} not null,
      message_id ${id} not null,
      created_at ${integer} not null,
      due_at ${integer} not null,
      attempts ${integer} not null,
      requests ${integer} not null,
      sealed_source ${blob} not null,
      primary key (instance_id, media_id)
    ) ${rows}`,
    'create index media_downloads_due on media_downloads (instance_id, due_at)',
  ]
}
