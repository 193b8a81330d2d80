import type { Flavour } from './flavour.ts'

export function secretsTables({ blob, clustered }: Flavour): string[] {
  return [
    `create table credentials (
      instance_id text not null,
      type text not null,
      id text not null,
      value ${blob} not null,
      primary key (instance_id, type, id)
    ) ${clustered}`,
    `create table sandbox_records (
      instance_id text not null,
      key text not null,
      value ${blob} not null,
      primary key (instance_id, key)
    ) ${clustered}`,
    `create table meta (
      key text not null,
      value ${blob} not null,
      primary key (key)
    ) ${clustered}`,
  ]
}
