import type { Flavour } from '../../flavour.ts'

/**
 * Groups, and contacts that the phone knows but that have not exchanged a message with the instance (`stranger`).
 * `subject` and `saved_name` are JSON strings, because other people choose them. The columns of searches contain folded
 * text. They are absent for a name that a node of the previous version writes, and keep the accents of an existing
 * name, until the contact's next message.
 */
export function directory({ id, integer, clustered, rows }: Flavour): string[] {
  return [
    `create table groups (
      instance_id ${id} not null references instances (id) on delete cascade,
      id ${id} not null,
      member ${integer} not null,
      search_name ${id} not null,
      subject text not null,
      member_count ${integer} not null,
      can_send ${integer} not null,
      is_admin ${integer} not null,
      as_of ${integer} not null,
      queried_at ${integer} not null,
      details text not null,
      primary key (instance_id, id)
    ) ${rows}`,
    'create index groups_by_name on groups (instance_id, search_name, id) where member = 1',
    `create table directory_fills (
      instance_id ${id} not null references instances (id) on delete cascade primary key,
      groups_at ${integer},
      contacts_at ${integer}
    ) ${clustered}`,
    `alter table contacts add column stranger ${integer} not null default 0`,
    'alter table contacts add column saved_name text',
    `alter table contacts add column search_saved ${id}`,
    `alter table contacts add column search_name ${id}`,
    'update contacts set search_name = lower(substr(name, 2, length(name) - 2)) where name is not null',
  ]
}
