import type { DatabaseKind } from '../../database-kind.ts'
import type { Flavour } from '../flavour.ts'

/**
 * How many existing events of an instance get a number on PostgreSQL. Other nodes wait for the lock during the update.
 */
const NUMBERED = 200

/**
 * Numbers the events of each instance. Existing events are numbered in the order of their IDs: all of them on SQLite, the newest
 * ones on PostgreSQL. An event without a number is not in the feed.
 *
 * `event_feeds` has a row for each instance with erased events. A new table needs no lock on `instances`.
 */
export function eventNumbers(flavour: Flavour): string[] {
  const { id, integer, clustered, kind } = flavour
  const statements: Record<DatabaseKind, (flavour: Flavour) => string[]> = { sqlite: onSqlite, postgres: onPostgres }
  return [
    ...statements[kind](flavour),
    `create table event_feeds (
      instance_id ${id} not null,
      erased_to ${integer} not null,
      primary key (instance_id)
    ) ${clustered}`,
  ]
}

/**
 * A node of the previous version inserts events without a number. The trigger numbers them, under the lock that
 * `EventRecorder` takes.
 */
function onPostgres(): string[] {
  return [
    'alter table events add column seq bigint',
    `update events set seq = numbered.seq
      from (
        select newest.instance_id, newest.id, row_number() over (partition by newest.instance_id order by newest.id) as seq
        from instances cross join lateral (
          select e.instance_id, e.id from events as e
          where e.instance_id = instances.id order by e.id desc limit ${NUMBERED}) as newest) as numbered
      where numbered.instance_id = events.instance_id and numbered.id = events.id`,
    // Partial, so that PostgreSQL never uses it to find an event by ID (see 0009).
    'create unique index events_seq on events (instance_id, seq) where seq is not null',
    `create function number_event() returns trigger language plpgsql as $$
      begin
        perform 1 from instances where id = new.instance_id for no key update;
        new.seq := 1 + greatest(
          coalesce((select max(seq) from events where instance_id = new.instance_id), 0),
          coalesce((select erased_to from event_feeds where instance_id = new.instance_id), 0));
        return new;
      end $$`,
    `create trigger events_number before insert on events
      for each row when (new.seq is null) execute function number_event()`,
    ...noteErased(),
  ]
}

/**
 * A node of the previous version erases events without updating `event_feeds`. The trigger does so, which lets readers
 * of the feed notice the gap.
 */
function noteErased(): string[] {
  return [
    `create function note_erased_events() returns trigger language plpgsql as $$
      begin
        insert into event_feeds (instance_id, erased_to)
          select instance_id, max(seq) from erased where seq is not null group by instance_id order by instance_id
          on conflict (instance_id) do update set erased_to = excluded.erased_to
            where event_feeds.erased_to < excluded.erased_to;
        return null;
      end $$`,
    `create trigger events_erased after delete on events referencing old table as erased
      for each statement execute function note_erased_events()`,
  ]
}

/** A new table, because adding a value to each row in place would split most pages. `body` stays the last column. */
function onSqlite({ clustered }: Flavour): string[] {
  const columns = 'instance_id, id, kind, timestamp, created_at, message_id, incoming_digest'
  return [
    `create table events_anew (
      instance_id text not null,
      id text not null,
      kind text not null,
      timestamp integer not null,
      created_at integer not null,
      message_id text,
      incoming_digest blob,
      seq integer not null,
      body text not null,
      primary key (instance_id, id)
    ) ${clustered}`,
    `insert into events_anew (${columns}, seq, body)
      select ${columns}, row_number() over (partition by instance_id order by id), body from events order by instance_id, id`,
    'drop table events',
    'alter table events_anew rename to events',
    'create unique index events_incoming on events (instance_id, incoming_digest) where incoming_digest is not null',
    'create index events_message on events (instance_id, message_id, id) where message_id is not null',
    'create unique index events_seq on events (instance_id, seq)',
  ]
}
