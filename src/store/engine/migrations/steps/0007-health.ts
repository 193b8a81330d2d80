import type { Flavour } from '../flavour.ts'

export function healthTables({ id, integer, clustered }: Flavour): string[] {
  return [
    `create table contacts (
      instance_id ${id} not null,
      number ${id} not null,
      primary key (instance_id, number)
    ) ${clustered}`,
    `insert into contacts (instance_id, number)
      select distinct instance_id, recipient from messages where sent_at is not null and recipient not like '%@%'`,
    `create table connection_health (
      instance_id ${id} not null,
      last_frame_at ${integer},
      ack_at ${integer},
      ack_latency_ms ${integer},
      undecryptable ${integer} not null,
      undecryptable_at ${integer},
      primary key (instance_id)
    ) ${clustered}`,
    `create table connection_closes (
      instance_id ${id} not null,
      at ${integer} not null,
      code ${integer} not null,
      primary key (instance_id, at, code)
    ) ${clustered}`,
    // Last, because running nodes wait for the lock on `connections`, and filling `contacts` may take long.
    `alter table connections add column retry_at ${integer}`,
    `alter table connections add column restricted_since ${integer}`,
    `alter table connections add column restricted_until ${integer}`,
    `alter table connections add column restriction_told ${integer}`,
  ]
}
