/** Finds redeliveries and retries among millions of unfinished deliveries. Recording an event adds to neither index. */
export function fewDeliveries(): string[] {
  return [
    'create index deliveries_redelivery on deliveries (instance_id) where redelivery = 1',
    `create index deliveries_retried on deliveries (instance_id, event_id) where readiness = 'retry'`,
  ]
}
