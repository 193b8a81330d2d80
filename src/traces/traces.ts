import type { OpenSpan, SendTrace, Traceparent } from '../domain/trace-context.ts'
import type { DueDelivery } from '../store/deliveries/deliveries.ts'
import type { NewMessage } from '../store/messages/messages.ts'

/** The spans of this node. No method throws, and none waits for the collector. */
export interface Traces {
  /** @param caller the trace context of the call; undefined: a new trace begins */
  accept(message: Pick<NewMessage, 'instanceId' | 'id'>, caller: Traceparent | undefined): OpenSpan
  sent(send: SendTrace): void
  attempt(delivery: DueDelivery): OpenSpan
  /** Exports the remaining spans, for a second at most. */
  close(): Promise<void>
}

/** Where spans go, and which are recorded. The names and meanings are those of the OpenTelemetry specification. */
export interface TraceTarget {
  url: URL
  headers: Readonly<Record<string, string>>
  timeoutMs: number
  serviceName: string
  resource: Readonly<Record<string, string>>
  sampler: string
  /** For the ratio samplers. */
  ratio: number
}
