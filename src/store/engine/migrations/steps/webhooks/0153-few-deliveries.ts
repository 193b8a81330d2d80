/**
 * Finds redeliveries and retries among millions of unfinished deliveries, and the deliveries of a rarely used endpoint among millions
 * of others. Recording an event adds to none of these indexes, and a delivery to the default endpoint adds to the first two only if
 * it is a redelivery or fails.
 */
export function fewDeliveries(): string[] {
  return [
    'create index deliveries_redelivery on deliveries (instance_id) where redelivery = 1',
    `create index deliveries_retried on deliveries (instance_id, event_id) where readiness = 'retry'`,
    `create index finished_deliveries_endpoint on finished_deliveries (endpoint_id, event_id)
      where superseded = 0 and state = 'delivered' and endpoint_id <> 'endpoint_default'`,
  ]
}
