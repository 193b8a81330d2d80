import type { Flavour } from '../flavour.ts'

/** The numbers are assigned under the lock of `audit_head`'s only row, so that none is missing. */
export function audit({ id, integer, blob, clustered }: Flavour): string[] {
  return [
    `create table audit_log (
      seq ${integer} not null,
      at ${integer} not null,
      actor ${id} not null,
      actor_name text,
      action ${id} not null,
      instance ${id},
      address text,
      details text not null,
      previous ${blob} not null,
      primary key (seq)
    ) ${clustered}`,
    'create index audit_log_at on audit_log (at)',
    'create index audit_log_actor on audit_log (actor, seq)',
    'create index audit_log_action on audit_log (action, seq)',
    'create index audit_log_instance on audit_log (instance, seq) where instance is not null',
    `create table audit_head (
      id ${integer} not null,
      seq ${integer} not null,
      digest ${blob} not null,
      primary key (id)
    ) ${clustered}`,
  ]
}
