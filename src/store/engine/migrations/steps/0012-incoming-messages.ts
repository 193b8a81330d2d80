import type { Flavour } from '../flavour.ts'

/**
 * One row per incoming message. Columns that the sender chooses (`whatsapp_id`, `username`, `name`, `text`) are JSON strings,
 * because PostgreSQL's text can contain neither U+0000 nor a lone surrogate. `text` is the last column, so that a list does
 * not read it. The table is not clustered: to compare keys SQLite would read whole rows.
 *
 * A node of the previous version does not know this table. If it erases an instance, the foreign key deletes the rows.
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
