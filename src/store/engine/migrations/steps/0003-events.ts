import type { Flavour } from '../flavour.ts'

export function eventsTables({ id, integer, blob, seq, key, clustered, busy }: Flavour): string[] {
  return [
    `create table events (
      instance_id ${id} not null,
      id ${id} not null,
      kind text not null,
      timestamp ${integer} not null,
      created_at ${integer} not null,
      message_id ${id},
      incoming_digest ${blob},
      body text not null,
      primary key (instance_id, id)
    ) ${clustered}`,
    'create unique index events_incoming on events (instance_id, incoming_digest) where incoming_digest is not null',
    'create index events_message on events (instance_id, message_id, id) where message_id is not null',

    `create table deliveries (
      seq ${seq},
      instance_id ${id} not null,
      event_id ${id} not null,
      message_id ${id},
      url text not null,
      readiness text not null,
      blocked_by ${id},
      attempts ${integer} not null,
      due_at ${integer} not null,
      redelivery ${integer} not null,
      ${key} (instance_id, event_id)
    ) ${busy}`,
    `create index deliveries_first on deliveries (instance_id, seq) where readiness = 'first'`,
    `create index deliveries_retry on deliveries (instance_id, due_at, seq) where readiness = 'retry'`,
    `create index deliveries_blocked on deliveries (instance_id, event_id) where readiness = 'blocked'`,
    'create index deliveries_message on deliveries (instance_id, message_id, seq) where message_id is not null',

    `create table finished_deliveries (
      seq ${integer} not null,
      instance_id ${id} not null,
      event_id ${id} not null,
      url text not null,
      state text not null,
      attempts ${integer} not null,
      redelivery ${integer} not null,
      superseded ${integer} not null,
      primary key (instance_id, event_id, seq)
    ) ${clustered}`,
    'create index finished_deliveries_state on finished_deliveries (instance_id, state, event_id) where superseded = 0',

    `create table attempts (
      instance_id ${id} not null,
      delivery_seq ${integer} not null,
      attempt_number ${integer} not null,
      event_id ${id} not null,
      url text not null,
      started_at ${integer} not null,
      duration_ms ${integer} not null,
      status ${integer},
      error text,
      response_excerpt text,
      primary key (instance_id, event_id, delivery_seq, attempt_number)
    ) ${clustered}`,
  ]
}
