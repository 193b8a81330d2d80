import type { Flavour } from '../flavour.ts'

export function panelTables({ integer, blob, clustered }: Flavour): string[] {
  return [
    'alter table connections add column cause text',
    `create table panel_sessions (
      id text not null,
      token_digest ${blob} not null unique,
      created_at ${integer} not null,
      expires_at ${integer} not null,
      user_agent text,
      primary key (id)
    ) ${clustered}`,
  ]
}
