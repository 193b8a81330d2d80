import type { Flavour } from '../flavour.ts'

export function messagesTables({ id, integer, blob, seq, key, rows, clustered }: Flavour): string[] {
  return [
    `create table messages (
      seq ${seq},
      instance_id ${id} not null,
      id ${id} not null,
      recipient text not null,
      text text not null,
      whatsapp_id ${id} not null,
      state text not null,
      created_at ${integer} not null,
      sent_at ${integer},
      delivered_at ${integer},
      read_at ${integer},
      failed_at ${integer},
      failure_code text,
      failure_message text,
      last_event_at ${integer},
      address text,
      content ${blob},
      ${key} (instance_id, id)
    ) ${rows}`,
    'create unique index messages_whatsapp_id on messages (instance_id, whatsapp_id)',
    `create index messages_queued on messages (instance_id, seq) where state = 'queued'`,
    `create index messages_failed on messages (instance_id, id) where state = 'failed'`,
    `create table idempotency_keys (
      instance_id ${id} not null,
      key ${id} not null,
      digest ${blob} not null,
      message_id ${id} not null,
      expires_at ${integer} not null,
      primary key (instance_id, key)
    ) ${clustered}`,
    'create index idempotency_keys_expiry on idempotency_keys (expires_at)',
    `create table numbers (
      instance_id ${id} not null,
      number ${id} not null,
      address text,
      expires_at ${integer} not null,
      primary key (instance_id, number)
    ) ${clustered}`,
    'create index numbers_expiry on numbers (expires_at)',
  ]
}
