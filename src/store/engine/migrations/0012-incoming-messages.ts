import type { Flavour } from './flavour.ts'

/**
 * A row for each incoming message; its events refer to it. What a sender chooses freely (`whatsapp_id`, `username`, `name`,
 * `text`) is a JSON string: PostgreSQL's text holds neither U+0000 nor a lone surrogate. `text` is last, so that a list
 * reads past no long one. The table is not clustered: to compare two keys SQLite would read the whole rows that hold them.
 *
 * A node of the previous version may erase an instance, and does not know this table: its rows go by the foreign key.
 */
export function incomingMessages({ id, integer, blob, rows }: Flavour): string[] {
  return [
    `create table incoming_messages (
      instance_id ${id} not null references instances (id) on delete cascade,
      id ${id} not null,
      created_at ${integer} not null,
      sent_at ${integer} not null,
      type text not null,
      chat ${id} not null,
      sender ${id} not null,
      addressing text,
      lid text,
      alias_digest ${blob},
      whatsapp_id text not null,
      username text,
      name text,
      text text,
      primary key (instance_id, id)
    ) ${rows}`,
    `create index incoming_messages_alias on incoming_messages (instance_id, alias_digest)
      where alias_digest is not null`,
  ]
}
