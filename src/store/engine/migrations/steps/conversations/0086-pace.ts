import type { Flavour } from '../../flavour.ts'

/** The pace of each instance, and the messages that count against it. */
export function pace({ id, integer, clustered, busy }: Flavour): string[] {
  return [
    `create table paces (
      instance_id ${id} not null references instances (id) on delete cascade primary key,
      settings text not null,
      opens_at ${integer} not null,
      new_recipients_at ${integer} not null
    ) ${clustered}`,
    `create table pace_uses (
      instance_id ${id} not null references instances (id) on delete cascade,
      message_id ${id} not null,
      recipient ${id},
      at ${integer} not null,
      primary key (instance_id, message_id)
    ) ${busy}`,
    'create index pace_uses_at on pace_uses (instance_id, at)',
  ]
}
