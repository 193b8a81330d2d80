import type { Flavour } from './flavour.ts'

/** Tables for communication and shared counts between nodes. */
export function betweenNodesTables({ kind, id, integer, clustered }: Flavour): string[] {
  return [
    `create table phone_orders (
      instance_id ${id} not null,
      id ${id} not null,
      left_at ${integer} not null,
      body text,
      answer text,
      primary key (instance_id, id)
    ) ${clustered}`,
    // Unlogged: a crash of the database resets the counts.
    `create ${kind === 'postgres' ? 'unlogged' : ''} table wrong_keys (
      address ${id} not null,
      ends_at ${integer} not null,
      count ${integer} not null,
      primary key (address)
    ) ${clustered}`,
    'create index wrong_keys_ends_at on wrong_keys (ends_at)',
  ]
}
