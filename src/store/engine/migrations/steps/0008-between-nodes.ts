import type { DatabaseKind } from '../../database-kind.ts'
import type { Flavour } from '../flavour.ts'

/** On PostgreSQL the table is unlogged: a crash of the database resets the counts. */
const CREATE: Record<DatabaseKind, string> = { sqlite: 'create', postgres: 'create unlogged' }

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
    `${CREATE[kind]} table wrong_keys (
      address ${id} not null,
      ends_at ${integer} not null,
      count ${integer} not null,
      primary key (address)
    ) ${clustered}`,
    'create index wrong_keys_ends_at on wrong_keys (ends_at)',
  ]
}
