import type { DatabaseKind } from '../../database-kind.ts'
import type { Flavour } from '../flavour.ts'

/**
 * The index of an instance's messages by ID contains settled messages only. The key begins with the ID, so that
 * messages accepted together share its pages, whatever their instances. With the instance first, each message changed a page
 * of its own, which on SQLite was nearly half of each commit.
 */
export function settledMessages({ kind }: Flavour): string[] {
  const statements: Record<DatabaseKind, () => string[]> = { sqlite: onSqlite, postgres: onPostgres }
  return statements[kind]()
}

function onPostgres(): string[] {
  return [
    // The strongest lock first: upgrading to it later can deadlock with running nodes.
    'alter table messages drop constraint messages_pkey, add primary key (id, instance_id)',
    `create index messages_settled on messages (instance_id, id) where state <> 'queued'`,
  ]
}

/** SQLite cannot drop a unique key. A new table replaces the old one and continues its numbering. */
function onSqlite(): string[] {
  return [
    `create table messages_anew (
      seq integer primary key autoincrement,
      instance_id text not null,
      id text not null,
      recipient text not null,
      text text not null,
      whatsapp_id text not null,
      state text not null,
      created_at integer not null,
      sent_at integer,
      delivered_at integer,
      read_at integer,
      failed_at integer,
      failure_code text,
      failure_message text,
      last_event_at integer,
      address text,
      content blob,
      unique (id, instance_id)
    ) strict`,
    'insert into messages_anew select * from messages order by seq',
    `delete from sqlite_sequence where name = 'messages_anew'`,
    `insert into sqlite_sequence (name, seq) select 'messages_anew', seq from sqlite_sequence where name = 'messages'`,
    'drop table messages',
    'alter table messages_anew rename to messages',
    // The last columns make these covering indexes for queries that read only IDs.
    `create index messages_queued on messages (instance_id, seq, id) where state = 'queued'`,
    `create index messages_settled on messages (instance_id, id, state) where state <> 'queued'`,
    `create index messages_failed on messages (instance_id, id) where state = 'failed'`,
    'create unique index messages_prepared on messages (whatsapp_id, instance_id) where address is not null',
  ]
}
