import type { Flavour } from '../../flavour.ts'

/**
 * Groups that a notification has announced and that still have to be queried. Nodes of the previous version query
 * immediately.
 */
export function dueGroups({ integer }: Flavour): string[] {
  return [
    `alter table groups add column query_due_at ${integer}`,
    `alter table groups add column has_joined ${integer} not null default 0`,
    'create index groups_due on groups (instance_id) where query_due_at is not null',
  ]
}
