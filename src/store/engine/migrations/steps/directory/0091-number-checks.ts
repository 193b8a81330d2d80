import type { Flavour } from '../../flavour.ts'

/** Numbers that a caller wants to be looked up, and how many unknown ones each instance has named in a day. */
export function numberChecks({ id, integer, clustered, busy }: Flavour): string[] {
  return [
    `create table number_orders (
      instance_id ${id} not null references instances (id) on delete cascade,
      number ${id} not null,
      ordered_at ${integer} not null,
      primary key (instance_id, number)
    ) ${busy}`,
    `create table number_budgets (
      instance_id ${id} not null references instances (id) on delete cascade primary key,
      day ${integer} not null,
      used ${integer} not null
    ) ${clustered}`,
  ]
}
