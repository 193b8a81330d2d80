import type { Flavour } from '../flavour.ts'

/** A node of the previous version does not know API keys. If it erases an instance, the foreign key deletes them. */
export function apiKeys({ id, integer, blob, clustered }: Flavour): string[] {
  return [
    `create table api_keys (
      instance_id ${id} not null references instances (id) on delete cascade,
      id ${id} not null,
      name text not null,
      digest ${blob} not null unique,
      prefix text not null,
      scopes text not null,
      created_at ${integer} not null,
      expires_at ${integer},
      last_used_at ${integer},
      primary key (instance_id, id)
    ) ${clustered}`,
  ]
}
