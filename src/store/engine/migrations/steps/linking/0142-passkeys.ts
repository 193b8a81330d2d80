import type { Flavour } from '../../flavour.ts'

/** The step of a linking with a passkey, and a person's answer until the owner of the connection has read it. */
export function passkeys({ id, integer, blob, clustered }: Flavour): string[] {
  return [
    'alter table connections add column passkey text',
    `create table passkey_answers (
      instance_id ${id} not null references instances (id) on delete cascade,
      goal_version ${integer} not null,
      epoch ${integer} not null,
      answer ${blob} not null,
      answered_at ${integer} not null,
      primary key (instance_id)
    ) ${clustered}`,
  ]
}
