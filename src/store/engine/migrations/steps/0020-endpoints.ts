import type { DatabaseKind } from '../../database-kind.ts'
import type { Flavour } from '../flavour.ts'

/**
 * Up to ten endpoints per instance, each with deliveries of its own. The default endpoint is the instance's webhook,
 * whose columns stay where they are: nodes of the previous version read and write them, and create deliveries only for
 * it. They would treat deliveries to other endpoints as its deliveries, so no other endpoint is created while such a
 * node runs (`nodes.endpoints`).
 *
 * A node of the previous version does not know the table. If it erases an instance, the foreign key deletes the rows.
 */
export function endpoints(flavour: Flavour): string[] {
  const { kind, id, integer, blob, clustered } = flavour
  const deliveries: Record<DatabaseKind, () => string[]> = {
    sqlite: () => deliveriesOnSqlite(),
    postgres: () => deliveriesOnPostgres(flavour),
  }
  const ofDefault = `${id} not null default 'endpoint_default'`
  return [
    ...deliveries[kind](),
    `create index deliveries_first on deliveries (instance_id, endpoint_id, seq) where readiness = 'first'`,
    `create index deliveries_retry on deliveries (instance_id, endpoint_id, due_at, seq) where readiness = 'retry'`,
    `alter table finished_deliveries add column endpoint_id ${ofDefault}`,
    `alter table attempts add column requested_number ${integer}`,
    'alter table instances add column webhook_events text',
    `alter table instances add column webhook_active ${integer} not null default 1`,
    'alter table instances add column webhook_description text',
    `alter table nodes add column endpoints ${integer} not null default 0`,
    `create table endpoints (
      instance_id ${id} not null references instances (id) on delete cascade,
      id ${id} not null,
      url text not null,
      secret ${blob} not null,
      previous_secret ${blob},
      previous_secret_until ${integer},
      events text not null,
      active ${integer} not null,
      description text,
      created_at ${integer} not null,
      deleted_at ${integer},
      primary key (instance_id, id)
    ) ${clustered}`,
    'create index endpoints_deleted on endpoints (instance_id, id) where deleted_at is not null',
  ]
}

function deliveriesOnPostgres({ id, integer }: Flavour): string[] {
  return [
    // The strongest lock first: upgrading to it later can deadlock with running nodes.
    `alter table deliveries
      add column endpoint_id ${id} not null default 'endpoint_default',
      add column requested_at ${integer},
      add column scheduled_at ${integer},
      drop constraint deliveries_pkey,
      add primary key (instance_id, event_id, endpoint_id)`,
    'drop index deliveries_first',
    'drop index deliveries_retry',
  ]
}

/** SQLite cannot drop a unique key. A new table replaces the old one and continues its numbering. */
function deliveriesOnSqlite(): string[] {
  const kept =
    'seq, instance_id, event_id, message_id, url, readiness, blocked_by, attempts, due_at, redelivery, failed_at'
  return [
    `create table deliveries_anew (
      seq integer primary key autoincrement,
      instance_id text not null,
      event_id text not null,
      endpoint_id text not null default 'endpoint_default',
      message_id text,
      url text not null,
      readiness text not null,
      blocked_by text,
      attempts integer not null,
      due_at integer not null,
      failed_at integer,
      requested_at integer,
      scheduled_at integer,
      redelivery integer not null,
      unique (instance_id, event_id, endpoint_id)
    ) strict`,
    `insert into deliveries_anew (${kept}) select ${kept} from deliveries order by seq`,
    `delete from sqlite_sequence where name = 'deliveries_anew'`,
    `insert into sqlite_sequence (name, seq)
      select 'deliveries_anew', seq from sqlite_sequence where name = 'deliveries'`,
    'drop table deliveries',
    'alter table deliveries_anew rename to deliveries',
    `create index deliveries_blocked on deliveries (instance_id, event_id) where readiness = 'blocked'`,
    'create index deliveries_message on deliveries (instance_id, message_id, seq) where message_id is not null',
  ]
}
