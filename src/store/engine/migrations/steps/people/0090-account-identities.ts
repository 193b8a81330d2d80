import type { Flavour } from '../../flavour.ts'

/** The logins of an OpenID Connect provider. A login belongs to one account. */
export function accountIdentities({ id, integer, clustered }: Flavour): string[] {
  return [
    `create table account_identities (
      issuer ${id} not null,
      subject ${id} not null,
      account_id ${id} not null references accounts (id) on delete cascade,
      created_at ${integer} not null,
      primary key (issuer, subject)
    ) ${clustered}`,
    'create index account_identities_account on account_identities (account_id)',
  ]
}
