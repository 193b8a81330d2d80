import type { Flavour } from '../flavour.ts'

/**
 * Sessions of accounts have a table of their own: a node of the previous version, which knows no roles, would treat every row of
 * `panel_sessions` as a session of the administrator.
 */
export function accounts({ id, integer, blob, clustered }: Flavour): string[] {
  return [
    `create table accounts (
      id ${id} not null,
      name text not null,
      name_key ${id} not null unique,
      role text not null,
      instances text,
      password_hash text,
      invitation_digest ${blob} unique,
      invitation_ends_at ${integer},
      created_at ${integer} not null,
      primary key (id)
    ) ${clustered}`,
    `create table account_sessions (
      id ${id} not null,
      account_id ${id} not null references accounts (id) on delete cascade,
      token_digest ${blob} not null unique,
      created_at ${integer} not null,
      expires_at ${integer} not null,
      user_agent text,
      primary key (id)
    ) ${clustered}`,
    'create index account_sessions_account on account_sessions (account_id)',
  ]
}
