import type { Flavour } from '../../flavour.ts'

/**
 * Endpoints that receive the events about the connections of all instances. A node of the previous version would record
 * such an event without a delivery to them, so no operator endpoint is created while such a node runs
 * (`nodes.operator_endpoints`). Their deliveries are few, and have indexes of their own.
 */
export function operatorEndpoints({ id, integer, blob, clustered }: Flavour): string[] {
  return [
    `create table operator_endpoints (
      id ${id} not null primary key,
      url text not null,
      secret ${blob} not null,
      previous_secret ${blob},
      previous_secret_until ${integer},
      events text not null,
      active ${integer} not null,
      description text,
      created_at ${integer} not null,
      deleted_at ${integer}
    ) ${clustered}`,
    `create index deliveries_operator on deliveries (endpoint_id, instance_id) where endpoint_id >= 'operator_'`,
    `create index finished_deliveries_operator on finished_deliveries (endpoint_id, state, event_id)
      where superseded = 0 and endpoint_id >= 'operator_'`,
    `alter table nodes add column operator_endpoints ${integer} not null default 0`,
  ]
}
