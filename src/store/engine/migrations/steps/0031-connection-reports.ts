import type { Flavour } from '../flavour.ts'

/**
 * The last reported state of each connection, so that an event reports each change once. A new table needs no lock on
 * `connections`.
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
