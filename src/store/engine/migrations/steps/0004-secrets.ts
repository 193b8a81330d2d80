import type { Flavour } from '../flavour.ts'

export function secretsTables({ id, blob, clustered }: Flavour): string[] {
  return [
    `create table credentials (
      instance_id ${id} not null,
      type ${id} not null,
      id ${id} not null,
      value ${blob} not null,
      primary key (instance_id, type, id)
    ) ${clustered}`,
    `create table sandbox_records (
      instance_id ${id} not null,
      key ${id} not null,
      value ${blob} not null,
      primary key (instance_id, key)
    ) ${clustered}`,
    `create table meta (
      key ${id} not null,
      value ${blob} not null,
      primary key (key)
    ) ${clustered}`,
  ]
}
