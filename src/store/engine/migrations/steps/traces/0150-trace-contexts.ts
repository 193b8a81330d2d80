/**
 * The caller's trace context. An event has a copy of its message's trace context, so that reading a delivery needs no
 * other row. Nodes of the previous version neither store nor post it.
 */
export function traceContexts(): string[] {
  return ['alter table messages add column traceparent text', 'alter table events add column traceparent text']
}
