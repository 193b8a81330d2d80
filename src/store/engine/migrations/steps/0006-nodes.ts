import type { Flavour } from '../flavour.ts'

export function nodesTables({ id, integer, clustered }: Flavour): string[] {
  return [
    `create table nodes (
      id ${id} not null,
      started_at ${integer} not null,
      seen_until ${integer} not null,
      primary key (id)
    ) ${clustered}`,
  ]
}
