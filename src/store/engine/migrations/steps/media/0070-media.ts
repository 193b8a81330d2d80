import type { Flavour } from '../../flavour.ts'

/**
 * A node of the previous version knows no media. If it erases an instance, the foreign keys delete the rows. These
 * include the keys of the files, so nobody can read the files any more.
 */
export function mediaTables({ id, integer, blob, rows, clustered }: Flavour): string[] {
  const instance = `instance_id ${id} not null references instances (id) on delete cascade`
  return [
    `create table media_files (
      ${instance},
      id ${id} not null,
      state text not null,
      sealed_key ${blob} not null,
      size ${integer} not null,
      due_at ${integer},
      primary key (instance_id, id)
    ) ${rows}`,
    'create index media_files_due on media_files (due_at) where due_at is not null',
    `create table media (
      ${instance},
      id ${id} not null,
      file_id ${id},
      sha256 ${blob},
      filename text,
      size ${integer} not null,
      mimetype text not null,
      created_at ${integer} not null,
      expires_at ${integer} not null,
      gone_at ${integer},
      gone_reason text,
      primary key (instance_id, id)
    ) ${rows}`,
    'create unique index media_content on media (instance_id, sha256) where sha256 is not null',
    'create index media_expiry on media (expires_at) where gone_at is null',
    'create index media_gone on media (gone_at) where gone_at is not null',
    `create table media_usage (
      ${instance},
      bytes ${integer} not null,
      primary key (instance_id)
    ) ${clustered}`,
  ]
}
