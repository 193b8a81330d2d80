import type { Flavour } from '../../flavour.ts'

/** Links that let somebody who cannot sign in link a number. */
export function handouts({ id, integer, blob, clustered }: Flavour): string[] {
  return [
    `create table handouts (
      instance_id ${id} not null references instances (id) on delete cascade,
      id ${id} not null,
      token_digest ${blob} not null unique,
      title text,
      return_url text,
      created_at ${integer} not null,
      expires_at ${integer} not null,
      browser_digest ${blob},
      opened_at ${integer},
      requested_at ${integer},
      goal_version ${integer},
      pairing_codes ${integer} not null,
      used_at ${integer},
      primary key (instance_id, id)
    ) ${clustered}`,
    'create index handouts_end on handouts (expires_at)',
  ]
}
