import type { Flavour } from '../flavour.ts'

/**
 * What each connection was last reported as, so that an event reports each change once. As a table of its own it needs no lock
 * on `connections`.
 */
export function connectionReports({ id, clustered }: Flavour): string[] {
  return [
    `create table connection_reports (
      instance_id ${id} not null,
      reported text not null,
      primary key (instance_id)
    ) ${clustered}`,
  ]
}
