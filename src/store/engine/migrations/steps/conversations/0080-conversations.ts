import type { Flavour } from '../../flavour.ts'

/**
 * A contact with a `last_at` is a chat. Groups, and people known only by LID, therefore also have rows. `username` and
 * `name` are JSON strings, because the other side chooses them. `details` and `extras` are JSON objects, null for a
 * plain text.
 *
 * Nodes of the previous version would send a text without its extras, and a command as an empty text. So neither is accepted
 * while such a node runs (`nodes.conversations`). The `seq` of a scheduled message is negative until it is due.
 */
export function conversations({ integer }: Flavour): string[] {
  return [
    `alter table contacts add column last_at ${integer}`,
    'alter table contacts add column lid text',
    'alter table contacts add column username text',
    'alter table contacts add column name text',
    'create index contacts_latest on contacts (instance_id, last_at, number) where last_at is not null',
    'create index contacts_lid on contacts (instance_id, lid) where lid is not null',
    'alter table messages add column extras text',
    `alter table messages add column not_before ${integer}`,
    'alter table incoming_messages add column details text',
    `alter table nodes add column conversations ${integer} not null default 0`,
  ]
}
