import type { DatabaseKind } from '../../database-kind.ts'
import type { Flavour } from '../flavour.ts'

export function instancesTables({ kind, id, integer, blob, seq, key, rows, clustered }: Flavour): string[] {
  const only: Record<DatabaseKind, string[]> = {
    sqlite: [],
    postgres: [
      'create index instances_seq on instances (seq)',
      // Unlogged: a crash of the database resets the windows.
      `create unlogged table rate_windows (
        instance_id ${id} not null,
        opened_at ${integer} not null,
        calls ${integer} not null,
        primary key (instance_id)
      ) with (fillfactor = 50)`,
    ],
  }
  return [
    `create table instances (
      seq ${seq},
      id ${id} not null,
      name text not null,
      kind text not null,
      token_digest ${blob} unique,
      webhook_url text,
      webhook_secret ${blob} not null,
      previous_secret ${blob},
      previous_secret_until ${integer},
      created_at ${integer} not null,
      deleted_at ${integer},
      ${key} (id)
    ) ${rows}`,
    'create index instances_deleted on instances (id) where deleted_at is not null',
    `create table connections (
      instance_id ${id} not null,
      state text not null,
      reason text not null,
      since ${integer} not null,
      goal text not null,
      goal_version ${integer} not null,
      pairing_phone text,
      qr text,
      qr_expires_at ${integer},
      pairing_code text,
      phone text,
      last_connected_at ${integer},
      primary key (instance_id)
    ) ${clustered}`,
    `create table leases (
      instance_id ${id} not null,
      owner ${id},
      epoch ${integer} not null,
      lease_until ${integer} not null,
      primary key (instance_id)
    ) ${clustered}`,
    'create index leases_owner on leases (owner)',
    ...only[kind],
  ]
}
