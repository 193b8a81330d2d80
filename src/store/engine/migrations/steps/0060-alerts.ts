import type { Flavour } from '../flavour.ts'

export function alertsTables({ id, integer, blob, clustered }: Flavour): string[] {
  return [
    `create table alert_targets (
      id ${id} not null primary key,
      channel text not null,
      name text not null,
      address ${blob} not null,
      created_at ${integer} not null,
      due_at ${integer} not null,
      failures ${integer} not null,
      last_error text,
      last_sent_at ${integer}
    ) ${clustered}`,
    `create table alerts (
      id ${id} not null primary key,
      rule text not null,
      subject ${id} not null,
      detail text not null,
      since ${integer} not null,
      began_at ${integer},
      gone_since ${integer},
      ended_at ${integer}
    ) ${clustered}`,
    'create unique index alerts_open on alerts (rule, subject) where ended_at is null',
    `create table alert_notices (
      target_id ${id} not null,
      alert_id ${id} not null,
      is_end ${integer} not null,
      primary key (target_id, alert_id, is_end)
    ) ${clustered}`,
    `create table alert_delays (
      rule ${id} not null primary key,
      minutes ${integer}
    ) ${clustered}`,
  ]
}
